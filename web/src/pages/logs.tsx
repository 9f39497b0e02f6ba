import { useEffect, useRef, useState } from "preact/hooks";
import { api, send, session } from "../api/client";
import { readEvents } from "../api/sse";
import type { List, LogLine } from "../api/types";
import { useLater, useTitle } from "../hooks";
import { formatFullTime, t } from "../i18n";
import { Choice, Failure, PageHead, Search } from "../ui/parts";
import { oneLine, visible } from "../ui/text";

const MOST_LINES = 1000;
const LEVELS = ["DEBUG", "INFO", "WARNING", "ERROR"] as const;
const SILENCE_MILLISECONDS = 60_000;

/** Lines as they come; the newest thousand. What was missed while the connection was gone is fetched again. */
function useLog(level: string, query: string): { lines: LogLine[]; error: Error | undefined } {
  const [lines, setLines] = useState<LogLine[]>([]);
  const [error, setError] = useState<Error>();
  useEffect(() => {
    let isGone = false;
    let stop = new AbortController();
    let pending: LogLine[] = [];
    let timer: ReturnType<typeof setTimeout> | undefined;
    const flush = () => {
      timer = undefined;
      const more = pending;
      pending = [];
      if (!isGone) setLines((before) => [...before, ...more].slice(-MOST_LINES));
    };
    async function follow(): Promise<void> {
      while (!isGone && session.value) {
        try {
          stop = new AbortController();
          const response = await send("GET", "/api/logs/events", { query: { level, query }, headers: { Accept: "text/event-stream" }, signal: stop.signal });
          const page = await api.get<List<LogLine>>("/api/logs", { level, query, limit: 200 });
          if (isGone) return;
          setLines(page.data);
          setError(undefined);
          await readEvents(response, (event) => {
            if (event.kind !== "log") return;
            pending.push(JSON.parse(event.data) as LogLine);
            if (pending.length > MOST_LINES) pending = pending.slice(-MOST_LINES);
            timer ??= setTimeout(flush, 200);
          }, SILENCE_MILLISECONDS, stop);
        } catch (reason) {
          if (!isGone && !stop.signal.aborted) setError(reason as Error);
        }
        if (!isGone) await new Promise((resolve) => setTimeout(resolve, 2000));
      }
    }
    setLines([]);
    void follow();
    const pause = () => stop.abort(); // a page that was left may stay in the browser's memory, with its connections
    addEventListener("pagehide", pause);
    return () => {
      isGone = true;
      removeEventListener("pagehide", pause);
      clearTimeout(timer);
      stop.abort();
    };
  }, [level, query]);
  return { lines, error };
}

export default function Logs() {
  useTitle(t("page_logs"));
  const [level, setLevel] = useState<string>("INFO");
  const [query, setQuery] = useState("");
  const words = useLater(query.trim(), 300);
  const { lines, error } = useLog(level, words);
  const [follows, setFollows] = useState(true);
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (follows && box.current) box.current.scrollTop = box.current.scrollHeight;
  }, [lines, follows]);
  return (
    <div class="page logs-page">
      <PageHead title={t("page_logs")} note={t("logsNote")}>
        <Choice label={t("level")} value={level} options={LEVELS.map((one) => [one, one] as const)} onChange={setLevel} />
        <Search value={query} onInput={setQuery} label={t("search")} />
        <label class="check"><input type="checkbox" checked={follows} onChange={(event) => setFollows(event.currentTarget.checked)} /> {t("followLog")}</label>
      </PageHead>
      {error && <Failure error={error} />}
      <div
        class="log" ref={box} tabIndex={0} role="log" aria-label={t("page_logs")} aria-live="off"
        onWheel={(event) => { if (event.deltaY < 0) setFollows(false); }}
      >
        {lines.length === 0 && <p class="faint pad">{t("logsEmpty")}</p>}
        {lines.map((line, index) => (
          <div key={`${line.at}-${index}`} class={`log-line ${line.level.toLowerCase()}`}>
            <span class="at" title={formatFullTime(line.at)}>{new Date(line.at * 1000).toTimeString().slice(0, 8)}</span>
            <span class="lv">{line.level}</span>
            <span class="what">{oneLine(line.text, 2000)} <span class="faint">{Object.entries(line.fields ?? {}).map(([name, value]) => `${visible(name)}=${oneLine(typeof value === "string" ? value : JSON.stringify(value), 300)}`).join(" ")}</span></span>
          </div>
        ))}
      </div>
    </div>
  );
}
