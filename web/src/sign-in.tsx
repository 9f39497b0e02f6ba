import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { signIn } from "./api/client";
import { useTitle } from "./hooks";
import { t } from "./i18n";
import { Mark } from "./ui/icons";
import { Button, Field } from "./ui/parts";

export function SignIn({ error, preferences }: { error: Error | undefined; preferences: ComponentChildren }) {
  const [key, setKey] = useState("");
  const [isBusy, setBusy] = useState(false);
  const [problem, setProblem] = useState(error?.message ?? "");
  useTitle(t("signIn"));
  async function submit(event: SubmitEvent): Promise<void> {
    event.preventDefault();
    setBusy(true);
    setProblem("");
    try {
      await signIn({ key: key.trim() });
    } catch (reason) {
      setProblem((reason as Error).message);
    } finally {
      setBusy(false);
    }
  }
  return (
    <main class="sign-in">
      <div class="sign-in-card">
        <Mark size={44} />
        <h1>{t("signInTitle")}</h1>
        {problem && <p class="notice bad" role="alert" dir="auto">{problem}</p>}
        <section>
          <h2>{t("signInHere")}</h2>
          <p>{t("signInCommand")}</p>
          <pre class="command"><code>hermes dashboard</code></pre>
        </section>
        <form onSubmit={(event) => void submit(event)}>
          <h2>{t("signInKey")}</h2>
          <Field label={t("apiKey")} help={t("apiKeyHelp")}>
            {(id, help) => (
              <input id={id} aria-describedby={help} type="password" autocomplete="current-password" value={key} onInput={(event) => setKey(event.currentTarget.value)} />
            )}
          </Field>
          <Button kind="primary" type="submit" disabled={isBusy || !key.trim()}>{t("signIn")}</Button>
        </form>
        {preferences}
      </div>
    </main>
  );
}
