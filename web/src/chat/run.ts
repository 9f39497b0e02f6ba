/** Follow a run: text as it is written, tool calls, questions. Survives a lost connection by the id of the last event. */
import { ApiError, send } from "../api/client";
import { readEvents, type ServerEvent } from "../api/sse";
import type { ToolView } from "./lines";

const SILENCE_MILLISECONDS = 60_000;
const LONGEST_DELAY = 5000;

export interface RunState {
  runId: string;
  turnId: string;
  sessionId: string;
  status: "starting" | "queued" | "running" | "waiting_approval" | "completed" | "failed" | "cancelled";
  /** What was written and done so far, in order. */
  parts: (({ kind: "text"; key: string; text: string; isOpen: boolean }) | ToolView)[];
  approvals: string[];
  error: string;
}

interface RunData {
  type: string;
  run_id?: string;
  turn_id?: string | null;
  session_id?: string | null;
  message_id?: string | null;
  delta?: string;
  text?: string;
  tool?: string;
  call_id?: string;
  arguments?: string;
  outcome?: string;
  status?: RunState["status"];
  approval?: { id: string };
  approvals?: { id: string }[];
  transcript?: { message_id: string; role: string; content: unknown; tool_calls?: { id: string; function: { name: string; arguments: string } }[]; tool_call_id?: string }[];
  error?: { message?: string } | null;
  reason?: string | null;
  time?: number;
}

export const ENDED: readonly string[] = ["completed", "failed", "cancelled"];

export function emptyRun(): RunState {
  return { runId: "", turnId: "", sessionId: "", status: "starting", parts: [], approvals: [], error: "" };
}

/** The state after an event. A new object each time: what did not change keeps its identity. */
export function advance(state: RunState, data: RunData): RunState {
  const next: RunState = { ...state, runId: data.run_id ?? state.runId, turnId: data.turn_id ?? state.turnId, sessionId: data.session_id ?? state.sessionId };
  switch (data.type) {
    case "run.queued":
      return { ...next, status: "queued" };
    case "run.started":
      return { ...next, status: "running", approvals: [] };
    case "assistant.delta":
      return { ...next, status: "running", parts: putText(next.parts, data.message_id ?? "", (text) => text + (data.delta ?? ""), true) };
    case "assistant.completed":
      return { ...next, parts: putText(next.parts, data.message_id ?? "", () => data.text ?? "", false) };
    case "tool.started": {
      const call: ToolView = {
        kind: "tool", key: `c${data.call_id}`, name: data.tool ?? "", arguments: data.arguments ?? "", result: null, outcome: "running", at: data.time ?? 0, turn: data.turn_id ?? "",
      };
      return { ...next, status: "running", parts: [...next.parts.filter((part) => part.key !== call.key), call] };
    }
    case "tool.completed":
      return {
        ...next,
        parts: next.parts.map((part) => (part.kind === "tool" && part.key === `c${data.call_id}` ? { ...part, outcome: data.outcome ?? "ok" } : part)),
      };
    case "run.waiting_approval":
      return { ...next, status: "waiting_approval", approvals: [...new Set([...next.approvals, data.approval?.id ?? ""])].filter(Boolean) };
    case "run.snapshot":
      return { ...next, status: data.status ?? next.status, parts: [], approvals: (data.approvals ?? []).map((one) => one.id) };
    case "run.completed":
    case "run.failed":
    case "run.cancelled":
      return {
        ...next,
        status: data.type.slice(4) as RunState["status"],
        approvals: [],
        parts: next.parts.map((part) => (part.kind === "text" ? { ...part, isOpen: false } : part)),
        error: data.error?.message ?? data.reason ?? "",
      };
    default:
      return next;
  }
}

function putText(parts: RunState["parts"], key: string, change: (text: string) => string, isOpen: boolean): RunState["parts"] {
  const at = parts.findIndex((part) => part.kind === "text" && part.key === key);
  const found = parts[at];
  const text = change(found?.kind === "text" ? found.text : "");
  const part = { kind: "text" as const, key, text, isOpen };
  return at < 0 ? [...parts, part] : parts.map((one, index) => (index === at ? part : one));
}

/** Start a run with `begin`, or follow one by its id. Calls `onState` at most once per frame. */
export class RunFollower {
  state = emptyRun();
  private readonly stop = new AbortController();
  private lastId = "";
  private frame = 0;
  private isTold = false;

  constructor(private readonly onState: (state: RunState) => void) {
    addEventListener("pagehide", this.leave); // a page that was left may stay in the browser's memory, with its connections
  }

  /** Stop listening. The run itself goes on. */
  readonly leave = (): void => {
    removeEventListener("pagehide", this.leave);
    this.stop.abort();
    cancelAnimationFrame(this.frame);
  };

  private received(event: ServerEvent): void {
    this.lastId = event.id || this.lastId;
    let data: RunData;
    try {
      data = JSON.parse(event.data) as RunData;
    } catch {
      return; // [DONE]
    }
    this.state = advance(this.state, { ...data, type: data.type ?? event.kind });
    this.tell();
  }

  private tell(): void {
    if (this.frame || this.stop.signal.aborted) return;
    // A hidden window gets no frames: say it by a timer there.
    const say = () => {
      this.frame = 0;
      if (!this.stop.signal.aborted && !this.isTold) this.onState(this.state);
    };
    if (document.hidden) setTimeout(say, 0);
    else this.frame = requestAnimationFrame(say);
  }

  private get isOver(): boolean {
    return ENDED.includes(this.state.status) || this.stop.signal.aborted;
  }

  private async read(response: Response): Promise<void> {
    const silence = new AbortController();
    const cancel = () => silence.abort();
    this.stop.signal.addEventListener("abort", cancel, { once: true });
    silence.signal.addEventListener("abort", () => void response.body?.cancel().catch(() => undefined), { once: true });
    try {
      await readEvents(response, (event) => this.received(event), SILENCE_MILLISECONDS, silence);
    } finally {
      this.stop.signal.removeEventListener("abort", cancel);
    }
  }

  /** Post a message and follow what comes of it. Throws what the gateway refused. */
  async begin(path: string, body: unknown, headers: Record<string, string> = {}): Promise<void> {
    const response = await send("POST", path, { body, headers: { Accept: "text/event-stream", ...headers }, signal: this.stop.signal });
    if (response.headers.get("Content-Type")?.startsWith("text/event-stream")) {
      await this.read(response).catch(() => undefined); // a lost line is taken up again below
      await this.follow();
    } else {
      const run = (await response.json()) as { run_id: string | null };
      await this.follow(run.run_id ?? ""); // none: the message is asked again where it was written
    }
  }

  async follow(runId = this.state.runId): Promise<void> {
    if (!runId) return;
    this.state = { ...this.state, runId };
    this.tell();
    let delay = 250;
    while (!this.isOver) {
      try {
        const headers: Record<string, string> = { Accept: "text/event-stream" };
        if (this.lastId) headers["Last-Event-ID"] = this.lastId;
        const response = await send("GET", `/v1/runs/${encodeURIComponent(runId)}/events`, { headers, signal: this.stop.signal });
        delay = 250;
        await this.read(response);
      } catch (error) {
        if (error instanceof ApiError && error.status < 500 && error.status !== 429) break;
      }
      if (this.isOver) break;
      await new Promise((resolve) => setTimeout(resolve, delay));
      delay = Math.min(delay * 2, LONGEST_DELAY);
    }
    removeEventListener("pagehide", this.leave);
    cancelAnimationFrame(this.frame);
    this.isTold = true; // a frame that comes late would show the run again, beside its lines in the transcript
    if (!this.stop.signal.aborted) this.onState(this.state);
  }
}
