import { Component, type ComponentChildren, type ComponentType } from "preact";
import { useEffect, useLayoutEffect, useState } from "preact/hooks";
import { loadSession, mayOpen, session, signIn, signOut } from "./api/client";
import { connect, connection, disconnect, lostAt, reconnectNow } from "./api/live";
import { useDrawer, useTick } from "./hooks";
import { chooseLanguage, formatDuration, language, t } from "./i18n";
import { theme, type Theme } from "./preferences";
import { followLinks, go, href, PAGES, route, type Page } from "./router";
import { SignIn } from "./sign-in";
import { waiting, watchWaiting } from "./waiting";
import { Icon, Mark, type IconName } from "./ui/icons";
import { Failure, IconButton } from "./ui/parts";
import { Toasts } from "./ui/toast";
import Chat from "./pages/chat";

type Loader = () => Promise<{ default: ComponentType }>;
const LATER: Partial<Record<Page, Loader>> = {
  overview: () => import("./pages/overview"),
  messages: () => import("./pages/messages"),
  approvals: () => import("./pages/approvals"),
  people: () => import("./pages/people"),
  jobs: () => import("./pages/jobs"),
  board: () => import("./pages/board"),
  sessions: () => import("./pages/sessions"),
  platforms: () => import("./pages/platforms"),
  skills: () => import("./pages/skills"),
  models: () => import("./pages/models"),
  logs: () => import("./pages/logs"),
  settings: () => import("./pages/settings"),
  usage: () => import("./pages/usage"),
};
export const READY = PAGES.filter((page) => page === "chat" || page in LATER);
/** On a phone these stand at the bottom; the rest is behind the last button. */
const FIRST: Page[] = ["chat", "overview", "approvals", "board"];

const parts = new Map<Page, ComponentType>([["chat", Chat]]);

function PageBody({ page }: { page: Page }) {
  const [, setLoaded] = useState(0);
  const [error, setError] = useState<Error>();
  useEffect(() => {
    setError(undefined);
    if (parts.has(page)) return;
    LATER[page]?.().then(
      (module) => {
        parts.set(page, module.default);
        setLoaded((count) => count + 1);
      },
      (reason: Error) => setError(reason),
    );
  }, [page]);
  const Body = parts.get(page);
  // A page whose script is gone belongs to an earlier version of the gateway: loading the page anew brings the new one.
  if (error) return <Failure error={error} onRetry={() => location.reload()} />;
  return Body ? <Body key={page} /> : <div class="loading" role="status"><span class="spinner" /> <span>{t("loading")}</span></div>;
}

class Boundary extends Component<{ children: ComponentChildren }, { error?: Error }> {
  override state: { error?: Error } = {};
  static override getDerivedStateFromError(error: Error) {
    return { error };
  }
  override componentDidCatch(error: Error) {
    console.error(error);
  }
  render() {
    const { error } = this.state;
    return error ? <div class="page"><Failure error={new Error(error.message)} onRetry={() => this.setState({ error: undefined })} /></div> : this.props.children;
  }
}

function Badge({ page }: { page: Page }) {
  const count = page === "approvals" ? waiting.value.approvals : page === "messages" ? waiting.value.dead : 0;
  return count ? <span class="badge">{count > 99 ? "99+" : count}</span> : null;
}

function NavLink({ page, onGo }: { page: Page; onGo?: () => void }) {
  const isHere = route.value.page === page;
  return (
    <a href={href(page)} aria-current={isHere ? "page" : undefined} onClick={onGo}>
      <Icon name={page as IconName} />
      <span>{t(`page_${page}`)}</span>
      <Badge page={page} />
    </a>
  );
}

const THEMES: [Theme, IconName][] = [["system", "screen"], ["light", "sun"], ["dark", "moon"]];

function Preferences() {
  const at = THEMES.findIndex(([name]) => name === theme.value);
  const next = THEMES[(at + 1) % THEMES.length] ?? THEMES[0]!;
  return (
    <div class="preferences">
      <IconButton
        icon={THEMES[at]?.[1] ?? "screen"}
        label={t("themeIs", { theme: t(`theme_${theme.value}`) })}
        onClick={() => (theme.value = next[0])}
      />
      <button class="icon-button language" lang={language.value === "zh" ? "en" : "zh-Hans"} onClick={() => chooseLanguage(language.value === "zh" ? "en" : "zh")}>
        {language.value === "zh" ? "English" : "中文"}
      </button>
      {session.value && <IconButton icon="out" label={t("signOutNamed", { name: session.value.name })} onClick={() => void signOut().catch(() => (session.value = null))} />}
    </div>
  );
}

function ConnectionLine() {
  useTick(1000);
  if (connection.value !== "lost" || lostAt.value === null) return null;
  return (
    <div class="connection" role="status">
      <span class="spinner" />
      <span>{t("connectionLost", { time: formatDuration(Math.max(1, Math.round((Date.now() - lostAt.value) / 1000))) })}</span>
      <button class="link" onClick={reconnectNow}>{t("tryNow")}</button>
    </div>
  );
}

function Back() {
  const [isBack, setBack] = useState(false);
  useEffect(() => {
    let was = connection.value;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const leave = connection.subscribe((now) => {
      if (now === "open" && was === "lost") {
        setBack(true);
        clearTimeout(timer);
        timer = setTimeout(() => setBack(false), 3000);
      }
      if (now === "lost") setBack(false);
      was = now;
    });
    return () => {
      clearTimeout(timer);
      leave();
    };
  }, []);
  return isBack ? <div class="connection back" role="status"><Icon name="check" size={16} /> {t("connectionBack")}</div> : null;
}

function Frame() {
  const page = route.value.page;
  const [isOpen, setOpen] = useState(false);
  const hasSide = useDrawer(isOpen);
  const shown = READY.filter(mayOpen);
  useEffect(() => setOpen(false), [page]);
  useEffect(() => watchWaiting(), []);
  useEffect(() => {
    void connect();
    return disconnect;
  }, [session.value?.name]);
  useEffect(() => {
    // g, then the first keys of the alphabet of pages: quick ways without a mouse.
    let isGoing = 0;
    const onKey = (event: KeyboardEvent) => {
      if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
      if ((event.target as Element).closest("input, textarea, select, [contenteditable], dialog")) return;
      if (event.key === "g") isGoing = Date.now();
      else if (Date.now() - isGoing < 1500 && /^[1-9]$/.test(event.key)) {
        const wanted = shown[Number(event.key) - 1];
        if (wanted) go(wanted);
      }
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, [shown.length]);
  return (
    <div class={`frame ${isOpen ? "menu-open" : ""}`} onClick={followLinks}>
      <a class="skip" href="#main" onClick={(event) => { event.preventDefault(); document.getElementById("main")?.focus(); }}>{t("skip")}</a>
      <nav class="side" aria-label={t("pages")}>
        {hasSide && (
          <>
            <a class="brand" href={href("overview")}><Mark size={24} /> <span>Hermes</span></a>
            <div class="links">{shown.map((one) => <NavLink key={one} page={one} />)}</div>
            <Preferences />
          </>
        )}
      </nav>
      <main id="main" tabIndex={-1}>
        <ConnectionLine />
        <Back />
        <Boundary key={page}><PageBody page={page} /></Boundary>
      </main>
      <nav class="bottom" aria-label={t("pages")}>
        {FIRST.filter((one) => shown.includes(one)).map((one) => <NavLink key={one} page={one} />)}
        <button aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}><Icon name="menu" /><span>{t("more")}</span></button>
      </nav>
      {isOpen && <button class="shade" aria-label={t("close")} onClick={() => setOpen(false)} />}
    </div>
  );
}

/** A one-time code stands behind the #, which no server and no Referer sees. It is used once and taken out of the address. */
function takeCode(): string {
  const match = /^#sign-in=([A-Za-z0-9_-]+)$/.exec(location.hash);
  if (!match?.[1]) return "";
  history.replaceState(null, "", location.pathname + location.search);
  return match[1];
}

export function App() {
  const [error, setError] = useState<Error>();
  async function begin(): Promise<void> {
    setError(undefined);
    try {
      const code = takeCode();
      if (code) await signIn({ code }).catch(async (reason: Error) => {
        await loadSession(); // somebody may be signed in already, from before
        if (!session.value) setError(reason);
      });
      else await loadSession();
    } catch (reason) {
      setError(reason as Error);
    }
  }
  useLayoutEffect(() => {
    void begin();
    const onHash = () => location.hash.startsWith("#sign-in=") && void begin();
    addEventListener("hashchange", onHash);
    return () => removeEventListener("hashchange", onHash);
  }, []);
  return (
    <>
      {session.value ? <Frame /> : session.value === null
        ? <SignIn error={error} preferences={<Preferences />} />
        : error ? <div class="page"><Failure error={error} onRetry={() => void begin()} /></div> : <div class="loading whole"><span class="spinner" /> <span>Hermes</span></div>}
      <Toasts />
    </>
  );
}
