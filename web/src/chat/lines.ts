/** A transcript as the chat shows it: who said what, and each tool call with its result. */
import type { ContentPart, SessionLine } from "../api/types";

export interface ToolView {
  kind: "tool";
  key: string;
  name: string;
  arguments: string;
  result: string | null;
  outcome: string;
  at: number;
  turn: string;
}
export interface TextView {
  kind: "user" | "agent" | "note";
  key: string;
  text: string;
  pictures: Picture[];
  seq: number;
  at: number;
  turn: string;
  /** Where it was written, in a conversation that is held in several places. */
  origin?: string;
}
export interface Picture {
  /** What the page may show by itself (data:, blob:), or '' where the gateway keeps the bytes. */
  source: string;
  /** An address elsewhere, shown as a link and never loaded. */
  link: string;
}
export type View = ToolView | TextView;

function readContent(content: SessionLine["content"]): { text: string; pictures: Picture[] } {
  if (content === null) return { text: "", pictures: [] };
  if (typeof content === "string") return { text: content, pictures: [] };
  const text = content.map((part) => part.text ?? "").filter(Boolean).join("\n");
  return { text, pictures: content.filter((part) => part.image_url).map(readPicture) };
}

function readPicture(part: ContentPart): Picture {
  const url = typeof part.image_url === "string" ? part.image_url : (part.image_url?.url ?? "");
  if (/^data:image\/(png|jpeg|webp|gif);base64,/.test(url)) return { source: url, link: "" };
  return { source: "", link: /^https?:/.test(url) ? url : "" };
}

export function toViews(lines: readonly SessionLine[]): View[] {
  const views: View[] = [];
  const calls = new Map<string, ToolView>();
  for (const line of lines) {
    if (line.is_taken_back) continue; // a retry or an undo took it out
    const { text, pictures } = readContent(line.content);
    if (line.role === "tool") {
      const call = calls.get(line.tool_call_id ?? "");
      if (call) {
        call.result = text;
        call.outcome = "ok";
      } else {
        views.push({ kind: "tool", key: `t${line.seq}`, name: line.name ?? "", arguments: "", result: text, outcome: "ok", at: line.created_at, turn: line.turn_id ?? "" });
      }
      continue;
    }
    if (text || pictures.length) {
      const kind = line.role === "user" ? "user" : line.role === "assistant" ? "agent" : "note";
      views.push({ kind, key: `m${line.seq}`, text, pictures, seq: line.seq, at: line.created_at, turn: line.turn_id ?? "", origin: line.origin?.platform });
    }
    for (const call of line.tool_calls ?? []) {
      const view: ToolView = {
        kind: "tool", key: `c${line.seq}-${call.id}`, name: call.function.name, arguments: call.function.arguments, result: null, outcome: "", at: line.created_at, turn: line.turn_id ?? "",
      };
      calls.set(call.id, view);
      views.push(view);
    }
  }
  return views;
}

export function mergeLines(before: readonly SessionLine[], after: readonly SessionLine[]): SessionLine[] {
  const bySeq = new Map(before.map((line) => [line.seq, line]));
  for (const line of after) bySeq.set(line.seq, line);
  return [...bySeq.values()].sort((a, b) => a.seq - b.seq);
}
