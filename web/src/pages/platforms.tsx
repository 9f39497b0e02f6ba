import { useEffect, useState } from "preact/hooks";
import { api, ApiError, session } from "../api/client";
import type { List, Login, Platform } from "../api/types";
import { useAction, useLive, useTitle } from "../hooks";
import { formatAge, language, t } from "../i18n";
import { Button, Confirm, Dialog, Failure, Field, Loading, PageHead, State } from "../ui/parts";
import { oneLine, visible } from "../ui/text";
import { toast } from "../ui/toast";

const path = (name: string) => `/api/platforms/${encodeURIComponent(name)}`;

export default function Platforms() {
  useTitle(t("page_platforms"));
  const list = useLive((signal) => api.get<List<Platform>>("/api/platforms", { language: language.value }, signal), ["platform"], [language.value]);
  const [setting, setSetting] = useState<Platform | null>(null);
  const [signingIn, setSigningIn] = useState<Platform | null>(null);
  const [isBusy, run] = useAction();
  const [tested, setTested] = useState<Record<string, { ok: boolean; sentence: string }>>({});
  const mayChange = session.value?.role === "owner";
  async function test(name: string): Promise<void> {
    await run(async () => {
      const result = await api.post<{ ok: boolean; sentence: string }>(`${path(name)}/test`);
      setTested((before) => ({ ...before, [name]: result }));
    });
  }
  return (
    <div class="page">
      <PageHead title={t("page_platforms")} note={t("platformsNote")} />
      {!mayChange && <p class="notice">{t("readOnly")}</p>}
      <Loading of={list}>
        {(page) => (
          <div class="columns">
            {[...page.data].sort((a, b) => Number(b.is_set_up) - Number(a.is_set_up)).map((one) => (
              <section key={one.name} class="card platform" aria-label={one.label} data-platform={one.name}>
                <div class="card-head">
                  <h2>{visible(one.label || one.name)}</h2>
                  {!one.is_set_up && <span class="faint">{t("notSetUp")}</span>}
                </div>
                <ul class="list">
                  {one.accounts.map((account) => (
                    <li key={account.name}>
                      <div class="row"><strong>{visible(account.name)}</strong> <State name={account.is_paused ? "paused" : account.state} /> <span class="faint">{account.last_frame_age === null ? "" : formatAge(account.last_frame_age)}</span></div>
                      {account.sentence && account.state !== "connected" && <p class="faint" dir="auto">{oneLine(account.sentence, 400)}</p>}
                      {account.cure && <p dir="auto">{oneLine(account.cure, 400)}</p>}
                    </li>
                  ))}
                </ul>
                {tested[one.name] && <p class={`notice ${tested[one.name]?.ok ? "good" : "bad"}`} role="status" dir="auto">{oneLine(tested[one.name]?.sentence, 400)}</p>}
                {mayChange && (
                  <div class="row actions">
                    <Button kind={one.is_set_up ? "plain" : "primary"} onClick={() => setSetting(one)}>{t(one.is_set_up ? "edit" : "setUp")}</Button>
                    {one.has_login && <Button onClick={() => setSigningIn(one)}>{t("signInQr")}</Button>}
                    {one.is_set_up && <Button disabled={isBusy} onClick={() => void test(one.name)}>{t("test")}</Button>}
                    {one.is_set_up && (one.accounts.some((account) => account.is_paused)
                      ? <Button icon="play" disabled={isBusy} onClick={() => void run(() => api.post(`${path(one.name)}/resume`)).then(list.reload)}>{t("resume")}</Button>
                      : <Confirm label={t("pause")} icon="pause" disabled={isBusy} onConfirm={() => void run(() => api.post(`${path(one.name)}/pause`)).then(list.reload)} />)}
                  </div>
                )}
              </section>
            ))}
          </div>
        )}
      </Loading>
      {setting && <SettingsDialog platform={setting} onClose={() => setSetting(null)} onDone={() => { setSetting(null); list.reload(); }} />}
      {signingIn && <LoginDialog platform={signingIn} onClose={() => { setSigningIn(null); list.reload(); }} />}
    </div>
  );
}

function SettingsDialog({ platform, onClose, onDone }: { platform: Platform; onClose: () => void; onDone: () => void }) {
  const [values, setValues] = useState<Record<string, string>>({});
  const [wrong, setWrong] = useState<{ name: string; text: string } | null>(null);
  const [result, setResult] = useState<{ ok: boolean; sentence: string } | null>(null);
  const [isBusy, setBusy] = useState(false);
  async function send(work: () => Promise<void>): Promise<void> {
    setBusy(true);
    setWrong(null);
    setResult(null);
    try {
      await work();
    } catch (error) {
      const body = error instanceof ApiError ? (error.body as { error?: { param?: string | null } } | null) : null;
      setWrong({ name: body?.error?.param?.split(".").at(-1) ?? "", text: (error as Error).message });
    } finally {
      setBusy(false);
    }
  }
  const isKnown = platform.settings.some((one) => one.name === wrong?.name);
  return (
    <Dialog title={platform.label || platform.name} onClose={onClose} wide>
      <form class="fields" onSubmit={(event) => { event.preventDefault(); void send(async () => { await api.patch(path(platform.name), { settings: values }); toast(t("platformSaved")); onDone(); }); }}>
        {platform.get.length > 0 && (
          <details open={!platform.is_set_up}>
            <summary>{t("howToGet")}</summary>
            <ol class="steps">{platform.get.map((step, index) => <li key={index} dir="auto">{visible(step)}</li>)}</ol>
          </details>
        )}
        {wrong && !isKnown && <Failure error={new ApiError(400, wrong.text)} />}
        {platform.settings.map((one) => (
          <Field key={one.name} label={`${one.label || one.name}${one.is_required ? ` (${t("required")})` : ""}`} help={one.help}>
            {(id, help) => (
              <>
                <input
                  id={id} aria-describedby={help} aria-invalid={wrong?.name === one.name} type={one.is_secret ? "password" : "text"} autocomplete="off" spellcheck={false}
                  placeholder={one.is_secret && one.is_set ? t("kept") : ""} value={values[one.name] ?? (one.is_secret ? "" : (one.value ?? ""))}
                  onInput={(event) => setValues({ ...values, [one.name]: event.currentTarget.value })}
                />
                {wrong?.name === one.name && <p class="bad-text" role="alert" dir="auto">{wrong.text}</p>}
              </>
            )}
          </Field>
        ))}
        {result && <p class={`notice ${result.ok ? "good" : "bad"}`} role="status" dir="auto">{oneLine(result.sentence, 500)}</p>}
        <div class="dialog-actions">
          <Button onClick={onClose}>{t("cancel")}</Button>
          <Button disabled={isBusy} onClick={() => void send(async () => setResult(await api.post(`${path(platform.name)}/test`, { settings: values })))}>{isBusy ? t("testing") : t("test")}</Button>
          <Button kind="primary" type="submit" disabled={isBusy || !Object.keys(values).length}>{t("save")}</Button>
        </div>
      </form>
    </Dialog>
  );
}

function QrCode({ modules }: { modules: string[] }) {
  const size = modules.length;
  const path = modules.map((row, y) => [...row].map((bit, x) => (bit === "1" ? `M${x + 4} ${y + 4}h1v1h-1z` : "")).join("")).join("");
  return (
    <svg class="qr" viewBox={`0 0 ${size + 8} ${size + 8}`} role="img" aria-label={t("qrHint")} shape-rendering="crispEdges">
      <rect width={size + 8} height={size + 8} fill="#fff" />
      <path d={path} fill="#000" />
    </svg>
  );
}

function LoginDialog({ platform, onClose }: { platform: Platform; onClose: () => void }) {
  const [login, setLogin] = useState<Login>({ state: "starting" });
  const [error, setError] = useState<Error>();
  const [answer, setAnswer] = useState("");
  const [isBusy, run] = useAction();
  const place = `${path(platform.name)}/login`;
  useEffect(() => {
    const stop = new AbortController();
    // Each question waits at the gateway until something changed: a code may be replaced by the next within seconds.
    async function follow(): Promise<void> {
      let now = await api.post<Login>(place);
      for (;;) {
        if (stop.signal.aborted) return;
        setLogin(now);
        if (now.state === "done" || now.state === "failed" || now.state === "idle") return;
        now = await api.get<Login>(place, { after: now.number }, stop.signal);
      }
    }
    follow().catch((reason: Error) => !stop.signal.aborted && setError(reason));
    return () => {
      stop.abort();
      void api.remove(place).catch(() => undefined); // it may have ended by itself
    };
  }, [platform.name]);
  return (
    <Dialog title={`${t("signInQr")}: ${platform.label || platform.name}`} onClose={onClose}>
      {error && <Failure error={error} />}
      <div class="login" role="status">
        {login.state === "starting" && <p class="loading"><span class="spinner" /> {t("loginStarting")}</p>}
        {login.state === "code" && login.modules && <><QrCode modules={login.modules} /><p>{t("qrHint")}</p></>}
        {login.state === "scanned" && <p>{t("scanned")}</p>}
        {login.state === "done" && <p class="notice good">{login.sentence ? visible(login.sentence) : t("loginDone")}</p>}
        {login.state === "failed" && <p class="notice bad" dir="auto">{visible(login.sentence ?? "")}</p>}
        {(login.lines ?? []).map((line, index) => <p key={index} class="faint" dir="auto">{oneLine(line, 300)}</p>)}
        {login.state === "asking" && (
          <form class="fields" onSubmit={(event) => { event.preventDefault(); void run(() => api.post(`${place}/answer`, { text: answer })).then(() => setAnswer("")); }}>
            <Field label={visible(login.question ?? t("answer"))}>{(id) => <input id={id} value={answer} onInput={(event) => setAnswer(event.currentTarget.value)} />}</Field>
            <Button kind="primary" type="submit" disabled={isBusy}>{t("answer")}</Button>
          </form>
        )}
      </div>
    </Dialog>
  );
}
