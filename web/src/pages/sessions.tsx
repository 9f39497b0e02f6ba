import { useEffect, useState } from "preact/hooks";
import { address, api } from "../api/client";
import type { List, Session } from "../api/types";
import { nameOf } from "../chat/list";
import { useAction, useLater, useLive, useTitle } from "../hooks";
import { formatCount, t } from "../i18n";
import { go, href } from "../router";
import { Icon } from "../ui/icons";
import { Age, Button, Confirm, Dialog, Empty, Field, IconButton, Loading, More, PageHead, Search } from "../ui/parts";
import { oneLine, visible } from "../ui/text";
import { toast } from "../ui/toast";

const PAGE = 50;

async function load(query: string, count: number, signal: AbortSignal): Promise<List<Session>> {
  const rows: Session[] = [];
  let cursor: string | null | undefined = undefined;
  let page: List<Session>;
  do {
    page = await api.get<List<Session>>("/api/sessions", { limit: PAGE, query, cursor }, signal);
    rows.push(...page.data);
    cursor = page.next_cursor;
  } while (rows.length < count && page.has_more && cursor);
  return { data: rows, has_more: page.has_more === true && Boolean(cursor) };
}

export default function Sessions() {
  useTitle(t("page_sessions"));
  const [query, setQuery] = useState("");
  const [count, setCount] = useState(PAGE);
  const words = useLater(query.trim(), 250);
  useEffect(() => setCount(PAGE), [words]);
  const list = useLive((signal) => load(words, count, signal), ["session"], [words, count]);
  const [renaming, setRenaming] = useState<Session | null>(null);
  const [isBusy, run] = useAction();
  const path = (one: Session) => `/api/sessions/${encodeURIComponent(one.id)}`;
  return (
    <div class="page">
      <PageHead title={t("page_sessions")} note={t("sessionsNote")}><Search value={query} onInput={setQuery} label={t("searchConversations")} /></PageHead>
      <Loading of={list}>
        {(page) => page.data.length === 0
          ? words
            ? <Empty icon="search" title={t("nothingFound", { query: words })} />
            : <Empty icon="sessions" title={t("sessionsEmpty")}><p>{t("sessionsEmptyHint")}</p><a class="button primary" href={href("chat", { new: "1" })}>{t("newChat")}</a></Empty>
          : (
            <>
              <div class="table-box">
                <table class="data flow">
                  <thead><tr><th>{t("title")}</th><th>{t("page_platforms")}</th><th class="num">{t("lines")}</th><th>{t("updated")}</th><th /></tr></thead>
                  <tbody>
                    {page.data.map((one) => (
                      <tr key={one.id}>
                        <td class="wide-cell"><a class="quiet-link" href={href("chat", { id: one.id })} dir="auto"><strong>{nameOf(one)}</strong></a>{(one.snippet || one.preview) && <div class="faint clip" dir="auto">{oneLine(one.snippet || one.preview, 160)}</div>}</td>
                        <td>{visible(one.platform)}</td>
                        <td class="num">{formatCount(one.message_count)}</td>
                        <td><Age at={one.updated_at} /></td>
                        <td>
                          <div class="row nowrap">
                            <IconButton icon="edit" label={t("rename")} onClick={() => setRenaming(one)} />
                            <IconButton icon="branch" label={t("branch")} disabled={isBusy} onClick={() => void run(async () => go("chat", { id: (await api.post<Session>(`${path(one)}/fork`)).id }))} />
                            <a class="icon-button" href={address(`${path(one)}/export`, { format: "markdown" })} download="" title={t("export")} aria-label={t("export")}><Icon name="download" /></a>
                            <Confirm label={t("delete")} disabled={isBusy} onConfirm={() => void run(() => api.remove(path(one))).then((done) => { if (done) toast(t("sessionDeleted")); list.reload(); })} />
                          </div>
                        </td>
                      </tr>
                    ))}
                  </tbody>
                </table>
              </div>
              <More show={page.has_more === true} onMore={() => setCount(count + PAGE)} />
            </>
          )}
      </Loading>
      {renaming && (
        <RenameDialog session={renaming} onClose={() => setRenaming(null)} onSave={(title) => void run(() => api.patch(path(renaming), { title })).then((done) => { if (done) setRenaming(null); list.reload(); })} />
      )}
    </div>
  );
}

function RenameDialog({ session, onClose, onSave }: { session: Session; onClose: () => void; onSave: (title: string) => void }) {
  const [title, setTitle] = useState(session.title);
  return (
    <Dialog title={t("rename")} onClose={onClose}>
      <form onSubmit={(event) => { event.preventDefault(); onSave(title.trim()); }}>
        <Field label={t("title")}>{(id) => <input id={id} dir="auto" maxLength={200} value={title} onInput={(event) => setTitle(event.currentTarget.value)} />}</Field>
        <div class="dialog-actions"><Button onClick={onClose}>{t("cancel")}</Button><Button kind="primary" type="submit">{t("save")}</Button></div>
      </form>
    </Dialog>
  );
}
