import { useEffect, useState } from "preact/hooks";
import { api } from "../api/client";
import type { List, Session } from "../api/types";
import { useDrawer, useLater, useLive } from "../hooks";
import { t } from "../i18n";
import { href } from "../router";
import { Age, Loading, More, Search } from "../ui/parts";
import { oneLine } from "../ui/text";
import { isUnread } from "./unread";
import { platformName } from "./views";

const PAGE = 40;

export function nameOf(session: Session): string {
  return oneLine(session.title || session.preview || session.label, 90) || t("untitled");
}

export function ConversationList({ current, isOpen, onGo }: { current: string; isOpen: boolean; onGo: () => void }) {
  const isNeeded = useDrawer(isOpen);
  return <aside class="conversations" aria-label={t("conversations")}>{isNeeded && <Conversations current={current} onGo={onGo} />}</aside>;
}

function Conversations({ current, onGo }: { current: string; onGo: () => void }) {
  const [query, setQuery] = useState("");
  const [limit, setLimit] = useState(PAGE);
  const words = useLater(query.trim(), 200);
  useEffect(() => setLimit(PAGE), [words]);
  const found = useLive(
    (signal) => api.get<List<Session>>("/api/sessions", { limit: Math.min(limit, 200), query: words }, signal),
    ["session", "turn"], [words, limit],
  );
  const isNew = (session: Session) => session.id !== current && isUnread(session.id, session.updated_at);
  return (
    <>
      <div class="conversations-head">
        <Search value={query} onInput={setQuery} label={t("searchConversations")} />
        <a class="button primary" href={href("chat", { new: "1" })} onClick={onGo}>{t("newChat")}</a>
      </div>
      <Loading of={found}>
        {(page) => (
          <div class="conversations-list">
            {page.data.length === 0 && <p class="faint pad">{words ? t("nothingFound", { query: words }) : t("noConversations")}</p>}
            <ul>
              {page.data.map((session) => (
                <li key={session.id}>
                  <a
                    href={href("chat", { id: session.id })} onClick={onGo} class={isNew(session) ? "unread" : ""}
                    aria-current={session.id === current ? "true" : undefined}
                  >
                    <span class="name" dir="auto">
                      {session.is_busy && <span class="pulse" title={t("working")} />}{nameOf(session)}{isNew(session) && <span class="sr"> {t("unread")}</span>}
                    </span>
                    <span class="meta"><span>{session.platform === "api" ? "" : platformName(session.platform)}</span> <Age at={session.updated_at} /></span>
                    {session.snippet && <span class="snippet" dir="auto">{oneLine(session.snippet, 120)}</span>}
                  </a>
                </li>
              ))}
            </ul>
            <More show={page.has_more === true && limit < 200} onMore={() => setLimit(limit + PAGE)} />
          </div>
        )}
      </Loading>
    </>
  );
}
