import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";
import { api, ApiError } from "../api/client";
import { onLive } from "../api/live";
import type { Approval, List, Session, SessionLine } from "../api/types";
import { Composer, type Draft, type How } from "../chat/composer";
import { keepDraft, readDraft } from "../chat/drafts";
import { pathOf, TAIL, tailOf, take } from "../chat/early";
import { endThatFills, textsOf, useGrowing } from "../chat/growing";
import { ConversationList, nameOf } from "../chat/list";
import { mergeLines, toViews, type TextView } from "../chat/lines";
import { picturesOf } from "../chat/pictures";
import { ENDED, RunFollower, type RunState } from "../chat/run";
import { markSeen } from "../chat/unread";
import { platformName, TextMessage, ToolCard } from "../chat/views";
import { useLive, useTitle } from "../hooks";
import { t } from "../i18n";
import { go, route } from "../router";
import { ApprovalCard } from "../ui/approval";
import { Icon } from "../ui/icons";
import { Button, Dialog, Empty, Failure, IconButton } from "../ui/parts";
import { formatAhead, Markdown, PlainText, visible } from "../ui/text";
import { toast } from "../ui/toast";

const MOST_LINES = 2000;

interface Conversation {
  session: Session;
  lines: SessionLine[];
}

function newName(): string {
  return `web-${Date.now().toString(36)}-${crypto.getRandomValues(new Uint32Array(2)).join("")}`.slice(0, 40);
}

function inputOf(draft: Draft): unknown {
  if (!draft.pictures.length) return draft.text;
  const pictures = draft.pictures.map((url) => ({ type: "image_url", image_url: { url } }));
  return [{ role: "user", content: [...(draft.text ? [{ type: "text", text: draft.text }] : []), ...pictures] }];
}

/** Lines of a session, newest last; earlier ones are fetched on asking, later ones as they come. */
function useConversation(id: string) {
  const [conversation, setConversation] = useState<Conversation>();
  const [error, setError] = useState<Error>();
  const current = useRef<Conversation>();
  current.current = conversation;
  const wanted = useRef(id);
  wanted.current = id;
  const newest = useRef(0);

  const underway = useRef<Promise<void>>();
  const isAnew = useRef(false);

  const load = useCallback(async (): Promise<void> => {
    const number = ++newest.current;
    const path = pathOf(id);
    const session = await take<Session>(path);
    const seen = current.current?.session.id === session.id ? current.current.lines : [];
    const known = isAnew.current ? [] : seen;
    const tail = tailOf(session);
    const lastSeq = known.at(-1)?.seq ?? (seen[0] ? seen[0].seq - 1 : tail.after);
    // An undone message takes lines away: what is behind the end of the session is no longer there.
    let lines = known.filter((line) => line.seq <= session.message_count);
    let after: number | null = Math.min(lastSeq, session.message_count);
    while (after !== null) {
      const page: List<SessionLine> = await take<List<SessionLine>>(`${path}/messages`, { ...tail, after });
      lines = mergeLines(lines, page.data);
      after = page.next_after ?? null;
    }
    const views = toViews(lines.slice(-TAIL));
    await formatAhead(textsOf(views.slice(endThatFills(views, innerHeight))));
    if (wanted.current !== id) return; // another conversation was opened meanwhile
    if (newest.current !== number) return underway.current; // the same was asked for again: that answer knows more
    isAnew.current = false;
    setConversation({ session, lines: lines.slice(-MOST_LINES) });
    setError(undefined);
  }, [id]);

  /** Show what there is now. `isReplaced`: lines changed that were here before, as by a message that is asked again. */
  const refresh = useCallback((isReplaced = false): Promise<void> => {
    if (!id) return Promise.resolve();
    isAnew.current ||= isReplaced;
    underway.current = load();
    return underway.current;
  }, [load]);

  const earlier = useCallback(async () => {
    const now = current.current;
    const first = now?.lines[0]?.seq;
    if (!now || !first) return;
    const path = `/api/sessions/${encodeURIComponent(now.session.id)}/messages`;
    const page = await api.get<List<SessionLine>>(path, { after: Math.max(0, first - 1 - TAIL), limit: TAIL });
    if (current.current !== now) return;
    setConversation({ session: now.session, lines: mergeLines(page.data.filter((line) => line.seq < first), now.lines) });
  }, []);

  useEffect(() => {
    setConversation(undefined);
    setError(undefined);
    current.current = undefined;
    isAnew.current = false;
    void refresh().catch((reason: Error) => setError(reason));
  }, [id]);
  return { conversation, error, refresh, earlier };
}

function Run({ run }: { run: RunState }) {
  return (
    <>
      {run.parts.map((part) => part.kind === "tool"
        ? <ToolCard key={part.key} call={part} />
        : part.text && <article key={part.key} class="message agent"><div class="bubble"><Markdown text={part.text} isOpen={part.isOpen} /></div></article>)}
      {run.status === "failed" && <div class="notice bad" role="alert"><Icon name="warn" /><span dir="auto">{t("runFailed", { reason: visible(run.error) })}</span></div>}
      {run.status === "cancelled" && <p class="faint center">{t("runCancelled")}</p>}
    </>
  );
}

export default function Chat() {
  const query = route.value.query;
  const id = query.get("id") ?? "";
  const { conversation, error, refresh, earlier } = useConversation(id);
  const latest = useRef(refresh);
  latest.current = refresh;
  const [run, setRun] = useState<RunState | null>(null);
  const [sent, setSent] = useState<TextView | null>(null);
  const [isListOpen, setListOpen] = useState(false);
  const [editing, setEditing] = useState<TextView | null>(null);
  const [restored, setRestored] = useState<Draft | null>(null);
  const [dropped, setDropped] = useState<File[]>([]);
  const [isOver, setOver] = useState(false);
  const [isAtEnd, setAtEnd] = useState(true);
  const follower = useRef<RunFollower | null>(null);
  const startedHere = useRef("");
  const scroller = useRef<HTMLDivElement>(null);
  const sticks = useRef(true);
  useTitle(conversation ? nameOf(conversation.session) : t("page_chat"));

  const session = conversation?.session;
  const isRunning = (run !== null && !ENDED.includes(run.status)) || (run === null && session?.is_busy === true);
  const asked = useLive(
    (signal) => id ? api.get<List<Approval>>("/api/approvals", {}, signal) : Promise.resolve({ data: [] }),
    ["approval"], [id],
  );
  const here = (asked.data?.data ?? []).filter((one) => session && one.session_key === session.key);
  const questions = [...new Set([...(run?.approvals ?? []), ...here.map((one) => one.id)])];

  const leaveRun = useCallback(() => {
    follower.current?.leave();
    follower.current = null;
    setRun(null);
    setSent(null);
  }, []);
  // Another conversation was opened; the one that was just begun here keeps its run.
  useEffect(() => {
    if (startedHere.current === id && id) return;
    startedHere.current = "";
    leaveRun();
    sticks.current = true;
  }, [id]);
  useEffect(() => () => follower.current?.leave(), []);

  // The same conversation elsewhere: on a phone, in another window, by a job.
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const leave = onLive((event) => {
      const data = event.data;
      const isOurs = event.kind === "reload" || (["turn", "session", "message"].includes(event.kind)
        && (data["session_id"] === session?.id || data["id"] === session?.id || (data["session_key"] !== undefined && data["session_key"] === session?.key)));
      if (!isOurs) return;
      clearTimeout(timer);
      timer = setTimeout(() => void refresh().catch(() => undefined), 150); // the next event, or a visit, tries again
    });
    return () => {
      clearTimeout(timer);
      leave();
    };
  }, [session?.id, session?.key, refresh]);

  useEffect(() => {
    const element = scroller.current;
    if (element && sticks.current) element.scrollTop = element.scrollHeight;
  });

  // What grows by itself (a question that is read, code that gets its colours) is followed too.
  useEffect(() => {
    const box = scroller.current;
    const lines = box?.firstElementChild;
    if (!box || !lines) return undefined;
    const watch = new ResizeObserver(() => {
      if (sticks.current) box.scrollTop = box.scrollHeight;
    });
    watch.observe(lines);
    return () => watch.disconnect();
  }, []);

  // What is shown in a window that is looked at has been seen.
  useEffect(() => {
    const see = () => { if (session && !document.hidden) markSeen(session.id, session.updated_at); };
    see();
    document.addEventListener("visibilitychange", see);
    return () => document.removeEventListener("visibilitychange", see);
  }, [session?.id, session?.updated_at]);

  // A chat on a phone may have begun a new session with this message: go there.
  useEffect(() => {
    if (!run?.sessionId || !session || session.platform === "api" || run.sessionId === session.id) return;
    startedHere.current = run.sessionId;
    go("chat", { id: run.sessionId }, true);
  }, [run?.sessionId, session?.id]);

  async function follow(start: (following: RunFollower) => Promise<void>): Promise<boolean> {
    follower.current?.leave();
    const following = new RunFollower((state) => setRun(state));
    follower.current = following;
    sticks.current = true;
    setRun(following.state);
    try {
      await start(following);
    } catch (reason) {
      if (follower.current === following) leaveRun();
      const isStopped = reason instanceof DOMException && reason.name === "AbortError";
      const newer = reason instanceof ApiError && reason.code === "session_not_current" ? reason.next : "";
      if (newer) go("chat", { id: newer });
      if (!isStopped) toast(newer ? t("movedOn") : (reason as Error).message, "error");
      return isStopped;
    }
    if (follower.current !== following) return true;
    await latest.current(true).catch(() => undefined);
    follower.current = null;
    // What the run said stands in the transcript now; a failure stays until the next message.
    setRun((now) => (now && ["failed", "cancelled"].includes(now.status) ? { ...now, parts: [] } : null));
    setSent(null);
    return true;
  }

  async function submit(draft: Draft, how: How, to = id): Promise<boolean> {
    if (how !== "send") {
      try {
        await api.post(`/api/sessions/${encodeURIComponent(to)}/${how}`, { text: draft.text });
        toast(t(how === "steer" ? "steered" : "queued"));
        await latest.current();
        return true;
      } catch (reason) {
        // The turn ended meanwhile: then it is an ordinary message.
        if (!(reason instanceof ApiError && (reason.status === 409 || reason.code === "nothing_running"))) {
          toast((reason as Error).message, "error");
          return false;
        }
      }
    }
    setSent({ kind: "user", key: "sent", text: draft.text, pictures: draft.pictures.map((source) => ({ source, link: "" })), seq: 0, at: Date.now() / 1000, turn: "" });
    const body = { input: inputOf(draft) };
    if (to) {
      void follow((following) => following.begin(`/api/sessions/${encodeURIComponent(to)}/chat/stream`, body)).then(
        (isTaken) => !isTaken && setRestored(draft),
      );
      return true;
    }
    const name = newName();
    try {
      const started = await api.post<{ run_id: string }>("/v1/runs", { ...body, session_id: name }, { "Idempotency-Key": name });
      startedHere.current = name;
      keepDraft(name, readDraft("")); // somebody may write on already
      keepDraft("", "");
      void follow((following) => following.follow(started.run_id));
      go("chat", { id: name }, true);
      return true;
    } catch (reason) {
      setSent(null);
      toast((reason as Error).message, "error");
      return false;
    }
  }

  // The session of a chat that was begun here appears with its first line.
  useEffect(() => {
    if (id && !conversation && run && run.status !== "starting") void refresh().catch(() => undefined);
  }, [run?.status]);

  function stop(): void {
    const path = run?.runId ? `/v1/runs/${encodeURIComponent(run.runId)}/stop` : `/api/sessions/${encodeURIComponent(id)}/stop`;
    void api.post(path).catch((reason: Error) => toast(reason.message, "error"));
  }

  async function fork(upTo: number | null): Promise<string> {
    const copy = await api.post<Session>(`/api/sessions/${encodeURIComponent(id)}/fork`, upTo === null ? {} : { up_to: upTo });
    return copy.id;
  }
  const branch = useCallback((view: TextView) => {
    void fork(view.seq).then((copy) => { go("chat", { id: copy }); toast(t("branched")); }, (reason: Error) => toast(reason.message, "error"));
  }, [id]);
  const edit = useCallback((view: TextView) => setEditing(view), []);
  const retry = useCallback(() => {
    void follow((following) => following.begin(`/api/sessions/${encodeURIComponent(id)}/retry`, {}));
  }, [id, refresh]);

  const all = useMemo(() => toViews(conversation?.lines ?? []), [conversation?.lines]);
  const views = useGrowing(session?.id ?? "", all, scroller);
  // While a run is shown as it happens, its lines in the transcript wait: the same words do not stand there twice.
  const isLive = run !== null && follower.current !== null;
  const settled = isLive ? views.filter((view) => view.turn !== run.turnId || (view.kind === "user" && !sent)) : views;
  const lastAgent = settled.findLast((view) => view.kind === "agent")?.key;
  const isApi = !session || session.platform === "api";
  const mayWrite = isApi || session?.may_write === true;
  const isMissing = error instanceof ApiError && error.status === 404 && run !== null;

  return (
    <div
      class={`chat ${isListOpen ? "list-open" : ""}`}
      onDragOver={(event) => { if (event.dataTransfer?.types.includes("Files")) { event.preventDefault(); setOver(true); } }}
      onDragLeave={(event) => event.currentTarget === event.target && setOver(false)}
      onDrop={(event) => {
        event.preventDefault();
        setOver(false);
        setDropped(picturesOf(event.dataTransfer));
      }}
    >
      <ConversationList current={session?.id ?? id} isOpen={isListOpen} onGo={() => setListOpen(false)} />
      <section class="talk" aria-label={t("page_chat")}>
        <header class="talk-head">
          <IconButton icon="sessions" class="only-phone" label={t("showList")} onClick={() => setListOpen(true)} />
          <h1 dir="auto">{session ? nameOf(session) : t("newChat")}</h1>
          {session && !isApi && <span class="chip" title={mayWrite ? t("alsoOnHelp", { platform: platformName(session.platform) }) : undefined}>{mayWrite ? t("alsoOn", { platform: platformName(session.platform) }) : platformName(session.platform)}</span>}
        </header>
        <div
          class="scroller" ref={scroller} tabIndex={0} role="log" aria-label={t("page_chat")} aria-live="off"
          onScroll={(event) => {
            const box = event.currentTarget;
            sticks.current = box.scrollHeight - box.scrollTop - box.clientHeight < 80;
            setAtEnd(sticks.current);
          }}
        >
          <div class="lines">
            {error && !isMissing && <Failure error={error} onRetry={() => void refresh().catch(() => undefined)} />}
            {!id && !run && <Empty icon="chat" title={t("chatEmptyTitle")}>{t("chatEmpty")}</Empty>}
            {views.length === all.length && (conversation?.lines[0]?.seq ?? 1) > 1 && (
              <div class="more"><Button onClick={() => { sticks.current = false; void earlier().catch((reason: Error) => toast(reason.message, "error")); }}>{t("showEarlier")}</Button></div>
            )}
            {settled.map((view) => view.kind === "tool"
              ? <ToolCard key={view.key} call={view} />
              : (
                <TextMessage
                  key={view.key} view={view} onBranch={branch} onEdit={mayWrite ? edit : undefined}
                  onRetry={mayWrite && !isRunning && view.key === lastAgent ? retry : undefined}
                />
              ))}
            {sent && isLive && <TextMessage view={sent} />}
            {run && <Run run={run} />}
            {questions.map((one) => <ApprovalCard key={one} id={one} />)}
            {isRunning && questions.length === 0 && <p class="working" role="status"><span class="dots"><i /><i /><i /></span> <span class="sr">{t("typing")}</span></p>}
          </div>
        </div>
        {!isAtEnd && (
          <button
            class="jump" aria-label={t("jumpDown")} title={t("jumpDown")}
            onClick={() => { if (scroller.current) scroller.current.scrollTop = scroller.current.scrollHeight; }}
          ><Icon name="down" /></button>
        )}
        {mayWrite
          ? <Composer isRunning={isRunning} onSend={submit} onStop={stop} draftKey={id} dropped={dropped} restored={restored} />
          : (
            <div class="composer held">
              <p>{t("heldOn", { platform: platformName(session?.platform ?? "") })}</p>
              <Button kind="primary" icon="branch" onClick={() => void fork(null).then((copy) => go("chat", { id: copy }), (reason: Error) => toast(reason.message, "error"))}>{t("continueCopy")}</Button>
            </div>
          )}
      </section>
      {isListOpen && <button class="shade" aria-label={t("close")} onClick={() => setListOpen(false)} />}
      {isOver && <div class="drop-here"><Icon name="image" size={32} /> {t("dropHere")}</div>}
      {editing && (
        <EditDialog
          view={editing} onClose={() => setEditing(null)}
          onSend={async (text) => {
            const before = conversation?.lines.findLast((line) => line.seq < editing.seq)?.seq ?? 0;
            setEditing(null);
            try {
              const copy = before ? await fork(before) : "";
              leaveRun();
              startedHere.current = copy;
              go("chat", copy ? { id: copy } : { new: "1" });
              await submit({ text, pictures: editing.pictures.map((one) => one.source).filter(Boolean) }, "send", copy);
            } catch (reason) {
              toast((reason as Error).message, "error");
            }
          }}
        />
      )}
    </div>
  );
}

function EditDialog({ view, onClose, onSend }: { view: TextView; onClose: () => void; onSend: (text: string) => void }) {
  const [text, setText] = useState(view.text);
  return (
    <Dialog title={t("editBranch")} onClose={onClose} wide>
      <form onSubmit={(event) => { event.preventDefault(); onSend(text.trim()); }}>
        {view.text.length > 20_000
          ? <PlainText text={view.text} />
          : <textarea class="tall" dir="auto" aria-label={t("writeMessage")} value={text} onInput={(event) => setText(event.currentTarget.value)} />}
        <div class="dialog-actions">
          <Button onClick={onClose}>{t("cancel")}</Button>
          <Button kind="primary" type="submit" disabled={!text.trim()}>{t("sendBranch")}</Button>
        </div>
      </form>
    </Dialog>
  );
}
