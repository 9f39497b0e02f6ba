import { useState } from "preact/hooks";
import { api, session } from "../api/client";
import type { Models, Provider } from "../api/types";
import { useAction, useLive, useTitle } from "../hooks";
import { formatDuration, t } from "../i18n";
import { Button, Dialog, Field, IconButton, Loading, PageHead } from "../ui/parts";
import { oneLine, visible } from "../ui/text";
import { toast } from "../ui/toast";

interface Tested {
  ok: boolean;
  label: string;
  seconds: number;
  text: string;
  sentence: string;
}

export default function ModelsPage() {
  useTitle(t("page_models"));
  const models = useLive((signal) => api.get<Models>("/api/models", {}, signal), ["setting"], []);
  const [isBusy, run] = useAction();
  const [tested, setTested] = useState<Record<string, Tested>>({});
  const [testing, setTesting] = useState("");
  const [choosing, setChoosing] = useState<Provider | null>(null);
  const [added, setAdded] = useState("");
  const mayChange = session.value?.role === "owner";

  async function test(key: string, body: Record<string, string>): Promise<void> {
    setTesting(key);
    await run(async () => {
      const result = await api.post<Tested>("/api/models/test", body);
      setTested((before) => ({ ...before, [key]: result }));
    });
    setTesting("");
  }
  const put = (settings: Record<string, string>) => run(() => api.patch("/api/settings", { settings })).then((done) => { if (done) toast(t("saved")); models.reload(); return done; });
  const order = (fallbacks: string[]) => void put({ "model.fallbacks": fallbacks.join(", ") });

  return (
    <div class="page">
      <PageHead title={t("page_models")} note={t("modelsNote")} />
      {!mayChange && <p class="notice">{t("readOnly")}</p>}
      <Loading of={models}>
        {(data) => (
          <div class="stack">
            <section class="card" aria-label={t("current")}>
              <div class="card-head"><h2>{t("current")}: {visible(data.current.label || `${data.current.provider}/${data.current.model}`)}</h2>
                {mayChange && <Button icon="play" disabled={isBusy} onClick={() => void test("current", {})}>{testing === "current" ? t("testing") : t("testCall")}</Button>}
              </div>
              <TestResult result={tested["current"]} />
            </section>
            <section class="card" aria-label={t("fallbackOrder")}>
              <div class="card-head"><h2>{t("fallbackOrder")}</h2><span class="faint">{t("fallbackNote")}</span></div>
              <ol class="list numbered">
                {data.fallbacks.map((name, index) => (
                  <li key={name} class="row">
                    <code class="grow">{visible(name)}</code>
                    {mayChange && (
                      <>
                        <IconButton icon="chevron" class="up" label={t("moveUp")} disabled={isBusy || index === 0} onClick={() => order(swapped(data.fallbacks, index, index - 1))} />
                        <IconButton icon="down" label={t("moveDown")} disabled={isBusy || index === data.fallbacks.length - 1} onClick={() => order(swapped(data.fallbacks, index, index + 1))} />
                        <IconButton icon="x" label={t("remove")} disabled={isBusy} onClick={() => order(data.fallbacks.filter((_, at) => at !== index))} />
                      </>
                    )}
                  </li>
                ))}
              </ol>
              {data.fallbacks.length === 0 && <p class="faint">{t("none")}</p>}
              {mayChange && (
                <form class="row" onSubmit={(event) => { event.preventDefault(); order([...data.fallbacks, added.trim()]); setAdded(""); }}>
                  <input class="grow" aria-label={t("addFallback")} placeholder={t("addFallback")} value={added} onInput={(event) => setAdded(event.currentTarget.value)} />
                  <Button type="submit" disabled={isBusy || !added.trim()}>{t("add")}</Button>
                </form>
              )}
            </section>
            <section aria-label={t("providers")}>
              <h2 class="section">{t("providers")}</h2>
              <div class="table-box">
                <table class="data flow">
                  <thead><tr><th>{t("provider")}</th><th>{t("model")}</th><th /><th /></tr></thead>
                  <tbody>
                    {[...data.providers].sort((a, b) => Number(b.is_current ?? false) - Number(a.is_current ?? false) || Number(b.is_ready) - Number(a.is_ready)).map((one) => (
                      <tr key={one.name}>
                        <td><strong>{visible(one.label || one.name)}</strong> {one.is_local && <span class="chip">{t("local")}</span>}<div class="faint">{oneLine(one.base_url, 80)}</div></td>
                        <td><code>{visible(one.default_model ?? "")}</code></td>
                        <td>{one.is_current ? <span class="state good">{t("current")}</span> : one.is_ready ? <span class="state">{t("ready")}</span> : <span class="faint">{oneLine(one.key_hint, 80) || t(one.is_local ? "notRunning" : "keyMissing")}</span>}<TestResult result={tested[one.name]} /></td>
                        <td>{mayChange && one.is_ready && (
                          <div class="row nowrap">
                            <Button disabled={isBusy} onClick={() => void test(one.name, { provider: one.name })}>{testing === one.name ? t("testing") : t("testCall")}</Button>
                            <Button disabled={isBusy} onClick={() => setChoosing(one)}>{t("useThis")}</Button>
                          </div>
                        )}</td>
                      </tr>
                    ))}
                  </tbody>
                </table>
              </div>
            </section>
            {Object.keys(data.routes).length > 0 && (
              <section class="card" aria-label={t("routes")}>
                <h2>{t("routes")}</h2>
                <ul class="list">{Object.entries(data.routes).map(([name, to]) => <li key={name} class="row"><code>{visible(name)}</code> → <code>{visible(to)}</code></li>)}</ul>
              </section>
            )}
          </div>
        )}
      </Loading>
      {choosing && <ChooseDialog provider={choosing} onClose={() => setChoosing(null)} onChoose={(model) => void put({ "model.provider": choosing.name, "model.default": model }).then((done) => done && setChoosing(null))} />}
    </div>
  );
}

function swapped(list: string[], from: number, to: number): string[] {
  const next = [...list];
  [next[from], next[to]] = [next[to] ?? "", next[from] ?? ""];
  return next;
}

function TestResult({ result }: { result: Tested | undefined }) {
  if (!result) return null;
  return <p class={`notice ${result.ok ? "good" : "bad"}`} role="status" dir="auto"><span>{result.ok ? t("answeredIn", { time: formatDuration(result.seconds) }) : ""} {oneLine(result.ok ? result.text : result.sentence, 300)}</span></p>;
}

function ChooseDialog({ provider, onClose, onChoose }: { provider: Provider; onClose: () => void; onChoose: (model: string) => void }) {
  const [model, setModel] = useState(provider.default_model ?? "");
  return (
    <Dialog title={provider.label || provider.name} onClose={onClose}>
      <form onSubmit={(event) => { event.preventDefault(); onChoose(model.trim()); }}>
        <Field label={t("model")}>{(id) => <input id={id} value={model} onInput={(event) => setModel(event.currentTarget.value)} />}</Field>
        <div class="dialog-actions"><Button onClick={onClose}>{t("cancel")}</Button><Button kind="primary" type="submit" disabled={!model.trim()}>{t("useThis")}</Button></div>
      </form>
    </Dialog>
  );
}
