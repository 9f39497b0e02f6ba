import { useEffect, useState } from "preact/hooks";
import { api } from "../api/client";
import type { List, MessageRow, Trace } from "../api/types";
import { useAction, useLater, useLive, useTitle } from "../hooks";
import { formatCount, formatDuration, t } from "../i18n";
import { go, href, route } from "../router";
import { Icon } from "../ui/icons";
import { Button, Choice, Dialog, Empty, Loading, More, PageHead, Search, State, Tabs, Time, toneOf } from "../ui/parts";
import { oneLine, PlainText, visible } from "../ui/text";
import { toast } from "../ui/toast";

const PAGE = 50;
type Shown = "all" | "in" | "out" | "dead";

async function loadPages(query: Record<string, string>, count: number, signal: AbortSignal): Promise<List<MessageRow>> {
  const rows: MessageRow[] = [];
  let before: string | null | undefined = undefined;
  let page: List<MessageRow>;
  do {
    page = await api.get<List<MessageRow>>("/api/messages", { ...query, limit: PAGE, before }, signal);
    rows.push(...page.data);
    before = page.next_before;
  } while (rows.length < count && page.has_more && before);
  return { data: rows, has_more: page.has_more };
}

export function retryMessage(id: string): Promise<unknown> {
  return api.post(`/api/messages/${encodeURIComponent(id)}/retry`).then(() => toast(t("sentAgain")));
}

export default function Messages() {
  useTitle(t("page_messages"));
  const query = route.value.query;
  const shown = (query.get("state") === "dead" ? "dead" : (query.get("direction") ?? "all")) as Shown;
  const [words, setWords] = useState("");
  const [platform, setPlatform] = useState("");
  const [count, setCount] = useState(PAGE);
  const late = useLater(words.trim(), 250);
  useEffect(() => setCount(PAGE), [shown, late, platform]);
  const asked: Record<string, string> = { query: late, platform };
  if (shown === "dead") asked["state"] = "dead";
  else if (shown !== "all") asked["direction"] = shown;
  const rows = useLive((signal) => loadPages(asked, count, signal), ["message", "turn"], [shown, late, platform, count]);
  const [isBusy, run] = useAction();
  const [names, setNames] = useState<string[]>([]);
  useEffect(() => {
    const seen = rows.data?.data.map((row) => row.platform) ?? [];
    setNames((before) => [...new Set([...before, ...seen])].filter(Boolean).sort());
  }, [rows.data]);
  const open = query.get("id");
  const show = (id: string) => go("messages", { ...(shown === "dead" ? { state: "dead" } : shown !== "all" ? { direction: shown } : {}), id });
  return (
    <div class="page">
      <PageHead title={t("page_messages")} note={t("messagesNote")}>
        <Tabs
          label={t("page_messages")} value={shown}
          options={[["all", t("all")], ["in", t("directionIn")], ["out", t("directionOut")], ["dead", t("deadLetters")]]}
          onChange={(next) => go("messages", next === "dead" ? { state: "dead" } : next === "all" ? {} : { direction: next })}
        />
        <Choice label={t("page_platforms")} value={platform} options={[["", t("anyPlatform")], ...names.map((name) => [name, name] as const)]} onChange={setPlatform} />
        <Search value={words} onInput={setWords} label={t("search")} />
      </PageHead>
      <Loading of={rows}>
        {(page) => page.data.length === 0
          ? <Empty icon="messages" title={t(shown === "dead" ? "deadEmpty" : "messagesEmpty")}>{t(shown === "dead" ? "deadEmptyHint" : "messagesEmptyHint")}</Empty>
          : (
            <>
              <div class="table-box">
                <table class="data flow">
                  <thead><tr><th>{t("time")}</th><th>{t("page_platforms")}</th><th>{t("message")}</th><th>{t("outcome")}</th><th /></tr></thead>
                  <tbody>
                    {page.data.map((row) => (
                      <tr key={row.id} class="open-able" onClick={(event) => !(event.target as Element).closest("button, a") && show(row.id)}>
                        <td><Time at={row.at} /></td>
                        <td><span class="faint" title={t(row.direction === "in" ? "directionIn" : "directionOut")}>{row.direction === "in" ? "→" : "←"}</span> {visible(row.platform)}<div class="faint" dir="auto">{oneLine(row.person || row.chat, 40)}</div></td>
                        <td class="wide-cell">
                          <a class="quiet-link" href={href("messages", { id: row.id })}><span class="clip" dir="auto">{oneLine(row.text, 200) || `(${visible(row.kind)})`}</span></a>
                          {row.reason && <div class={toneOf(row.state) === "bad" ? "bad-text" : "faint"} dir="auto">{oneLine(row.reason, 200)}</div>}
                        </td>
                        <td><State name={row.state} /></td>
                        <td>{row.can_retry && <Button icon="retry" disabled={isBusy} onClick={() => void run(() => retryMessage(row.id)).then(rows.reload)}>{t("sendAgain")}</Button>}</td>
                      </tr>
                    ))}
                  </tbody>
                </table>
              </div>
              <More show={page.has_more === true} onMore={() => setCount(count + PAGE)} />
            </>
          )}
      </Loading>
      {open && <TraceDialog id={open} onClose={() => history.length > 1 ? history.back() : go("messages")} />}
    </div>
  );
}

function TraceDialog({ id, onClose }: { id: string; onClose: () => void }) {
  const trace = useLive((signal) => api.get<Trace>(`/api/messages/${encodeURIComponent(id)}`, {}, signal), ["message", "turn", "approval"], [id]);
  const [isBusy, run] = useAction();
  return (
    <Dialog title={t("timeline")} onClose={onClose} wide>
      <Loading of={trace}>
        {(data) => (
          <div class="stack">
            <p dir="auto"><strong>{visible(data.headline)}</strong></p>
            {data.turn && (
              <p class="row faint">
                <State name={data.turn.state} />
                <span>{visible(data.turn.model ?? "")}</span>
                <span>{t("tokensOfTurn", { in: formatCount(data.turn.prompt_tokens ?? 0), out: formatCount(data.turn.completion_tokens ?? 0) })}</span>
                {data.turn.session_id && <a href={href("chat", { id: data.turn.session_id })}>{t("openSession")}</a>}
              </p>
            )}
            <ol class="timeline">
              {data.steps.map((step, index) => (
                <li key={index} class={`step ${step.kind} ${toneOf(step.state)}`}>
                  <span class="dot" />
                  <div>
                    <div class="row">
                      <Time at={step.at} />
                      <span class="chip">{t(`step_${step.kind}`)}</span>
                      <strong dir="auto">{oneLine(step.title, 200)}</strong>
                      <State name={step.state} />
                      {step.seconds !== null && step.seconds !== undefined && <span class="faint">{formatDuration(step.seconds)}</span>}
                    </div>
                    {step.detail && <PlainText text={step.detail} />}
                    {step.kind === "out" && step.state === "dead" && step.id && (
                      <Button icon="retry" disabled={isBusy} onClick={() => void run(() => retryMessage(step.id ?? "")).then(trace.reload)}>{t("sendAgain")}</Button>
                    )}
                  </div>
                </li>
              ))}
            </ol>
            <p class="faint"><Icon name="link" size={14} /> <code>{visible(data.id)}</code></p>
          </div>
        )}
      </Loading>
    </Dialog>
  );
}
