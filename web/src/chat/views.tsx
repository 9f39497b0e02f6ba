import { t } from "../i18n";
import { Icon } from "../ui/icons";
import { memo } from "../ui/memo";
import { IconButton, State, Time } from "../ui/parts";
import { Markdown, oneLine, PlainText, visible } from "../ui/text";
import { toast } from "../ui/toast";
import type { Picture, TextView, ToolView } from "./lines";

function pretty(json: string): string {
  try {
    const value: unknown = JSON.parse(json);
    if (typeof value !== "object" || value === null) return json;
    return Object.entries(value).map(([name, one]) => `${name}: ${typeof one === "string" ? one : JSON.stringify(one, null, 1)}`).join("\n");
  } catch {
    return json; // cut off, or never JSON
  }
}

/** What a call is about, in one line. */
function gist(json: string): string {
  try {
    const value: unknown = JSON.parse(json);
    const first = typeof value === "object" && value !== null ? Object.values(value).find((one) => typeof one === "string" && one) : "";
    return oneLine(String(first ?? ""), 100);
  } catch {
    return oneLine(json, 100);
  }
}

/** How people write the name of a platform. */
export function platformName(name: string): string {
  const words: Record<string, string> = { qq: "QQ", whatsapp: "WhatsApp", weixin: "Weixin", dashboard: t("dashboard") };
  return words[name] ?? name.charAt(0).toUpperCase() + name.slice(1);
}

export const ToolCard = memo(({ call }: { call: ToolView }) => (
  <details class={`tool ${call.outcome}`}>
    <summary>
      <Icon name="chevron" size={14} />
      <code>{visible(call.name)}</code>
      <span class="gist" dir="auto">{gist(call.arguments)}</span>
      {call.outcome === "running" ? <span class="state wait"><span class="spinner" /> {t("toolRunning")}</span> : call.outcome !== "ok" && <State name={call.outcome} />}
    </summary>
    <div class="tool-body">
      {call.arguments && call.arguments !== "{}" && <><h4>{t("tool_arguments")}</h4><PlainText text={pretty(call.arguments)} mono /></>}
      <h4>{t("tool_result")}</h4>
      {call.result === null ? <p class="faint">{t("toolNoResult")}</p> : <PlainText text={call.result} mono />}
    </div>
  </details>
));

function Pictures({ pictures }: { pictures: Picture[] }) {
  return (
    <div class="pictures">
      {pictures.map((one, index) => one.source
        ? <img key={index} src={one.source} alt={t("picture")} />
        : one.link
          ? <a key={index} href={one.link} target="_blank" rel="noopener noreferrer"><Icon name="image" /> {oneLine(one.link, 80)}</a>
          : <span key={index} class="chip"><Icon name="image" size={16} /> {t("pictureKept")}</span>)}
    </div>
  );
}

function copyText(text: string): void {
  void navigator.clipboard.writeText(text).then(() => toast(t("copied")), (error: Error) => toast(error.message, "error"));
}

export const TextMessage = memo((
  { view, onEdit, onBranch, onRetry }: { view: TextView; onEdit?: (view: TextView) => void; onBranch?: (view: TextView) => void; onRetry?: () => void },
) => (
  <article class={`message ${view.kind}`}>
    <div class="bubble">
      {view.pictures.length > 0 && <Pictures pictures={view.pictures} />}
      {view.text && (view.kind === "agent" ? <Markdown text={view.text} /> : <PlainText text={view.text} />)}
    </div>
    <footer class="message-tools">
      {view.origin && <span class="origin">{platformName(view.origin)}</span>}
      <Time at={view.at} />
      <IconButton icon="copy" label={t("copy")} onClick={() => copyText(view.text)} />
      {onEdit && view.kind === "user" && <IconButton icon="edit" label={t("editBranch")} onClick={() => onEdit(view)} />}
      {onBranch && <IconButton icon="branch" label={t("branchHere")} onClick={() => onBranch(view)} />}
      {onRetry && <IconButton icon="retry" label={t("retry")} onClick={onRetry} />}
    </footer>
  </article>
));
