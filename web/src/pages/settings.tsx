import { useMemo, useState } from "preact/hooks";
import { api, ApiError, session } from "../api/client";
import type { List, SettingRow } from "../api/types";
import { useLive, useTitle } from "../hooks";
import { language, t } from "../i18n";
import { Button, Loading, PageHead, Search } from "../ui/parts";
import { oneLine, visible } from "../ui/text";
import { toast } from "../ui/toast";

function asText(value: SettingRow["value"]): string {
  if (value === null || value === undefined) return "";
  return Array.isArray(value) ? value.join(", ") : String(value);
}

export default function Settings() {
  useTitle(t("page_settings"));
  const [query, setQuery] = useState("");
  const [isOnlySet, setOnlySet] = useState(false);
  const settings = useLive((signal) => api.get<List<SettingRow>>("/api/settings", { language: language.value }, signal), ["setting"], [language.value]);
  const mayChange = session.value?.role === "owner";
  const sections = useMemo(() => {
    const words = query.trim().toLowerCase();
    const found = (settings.data?.data ?? []).filter((one) => (!isOnlySet || one.is_set) && (!words || `${one.name} ${one.help} ${one.env?.join(" ")}`.toLowerCase().includes(words)));
    const bySection = new Map<string, SettingRow[]>();
    for (const one of found) bySection.set(one.section, [...(bySection.get(one.section) ?? []), one]);
    return [...bySection];
  }, [settings.data, query, isOnlySet]);
  const isFiltered = query.trim() !== "" || isOnlySet;
  return (
    <div class="page">
      <PageHead title={t("page_settings")} note={t("settingsNote")}>
        <label class="check"><input type="checkbox" checked={isOnlySet} onChange={(event) => setOnlySet(event.currentTarget.checked)} /> {t("onlyChanged")}</label>
        <Search value={query} onInput={setQuery} label={t("searchSettings")} />
      </PageHead>
      {!mayChange && <p class="notice">{t("readOnly")}</p>}
      <Loading of={settings}>
        {() => (
          <div class="stack">
            {sections.length === 0 && <p class="faint">{t("nothingFound", { query: query.trim() })}</p>}
            {sections.map(([name, rows]) => (
              <details key={name} class="card fold" open={isFiltered || name === sections[0]?.[0]}>
                <summary><strong>{visible(name || "…")}</strong> <span class="faint">{rows.length}</span></summary>
                {rows.map((one) => <Row key={one.name} setting={one} mayChange={mayChange} onSaved={settings.reload} />)}
              </details>
            ))}
          </div>
        )}
      </Loading>
    </div>
  );
}

function Row({ setting, mayChange, onSaved }: { setting: SettingRow; mayChange: boolean; onSaved: () => void }) {
  const now = setting.is_set && !setting.is_secret ? (setting.written ?? "") : ""; // what was not set shows its value in grey
  const inForce = now || asText(setting.value);
  const [text, setText] = useState<string | null>(null);
  const [problem, setProblem] = useState("");
  const [isBusy, setBusy] = useState(false);
  const id = `set-${setting.name}`;
  async function save(value: string | null): Promise<void> {
    setBusy(true);
    setProblem("");
    try {
      await api.patch("/api/settings", { settings: { [setting.name]: value } });
      setText(null);
      toast(t("saved"));
      onSaved();
    } catch (error) {
      setProblem(error instanceof ApiError ? error.message : t("noConnection"));
    } finally {
      setBusy(false);
    }
  }
  const shown = text ?? now;
  const shared = { id, disabled: !mayChange || isBusy, "aria-describedby": `${id}-help`, "aria-invalid": problem !== "" };
  return (
    <form class="setting" onSubmit={(event) => { event.preventDefault(); if (text !== null) void save(text); }}>
      <div class="setting-name">
        <label for={id}><code>{setting.name}</code></label>
        <p id={`${id}-help`} class="faint" dir="auto">{setting.help}</p>
      </div>
      <div class="setting-value">
        <div class="row nowrap">
          {setting.type === "flag"
            ? (
              <select {...shared} class="select" value={/^(true|yes|on|1)$/i.test(inForce) ? "true" : "false"} onChange={(event) => void save(event.currentTarget.value)}>
                <option value="true">{t("yes")}</option><option value="false">{t("no")}</option>
              </select>
            )
            : setting.type === "choice" && setting.choices?.length
              ? <select {...shared} class="select" value={inForce} onChange={(event) => void save(event.currentTarget.value)}>{[...new Set([...setting.choices, inForce])].map((one) => <option key={one} value={one}>{one || t("notSet")}</option>)}</select>
              : <input {...shared} type={setting.is_secret ? "password" : "text"} autocomplete="off" spellcheck={false} dir="auto" value={shown} placeholder={setting.is_secret ? (setting.is_set ? t("kept") : t("notSet")) : setting.value === "not set" ? t("notSet") : asText(setting.value)} onInput={(event) => setText(event.currentTarget.value)} />}
          {text !== null && text !== now && <Button kind="primary" type="submit" disabled={isBusy}>{t("save")}</Button>}
        </div>
        {problem && <p class="bad-text" role="alert" dir="auto">{problem}</p>}
        <p class="row faint small">
          <span>{t("source")}: {setting.source === "default" ? t("theDefault") : oneLine(setting.source, 100)}</span>
          {setting.is_set && mayChange && <button type="button" class="link" disabled={isBusy} onClick={() => void save(null)}>{t("backToDefault")}</button>}
          {!setting.is_secret && setting.is_set && <span>{t("defaultValue", { value: asText(setting.default) || "–" })}</span>}
        </p>
        {setting.note && <p class="faint small" dir="auto">{setting.note}</p>}
      </div>
    </form>
  );
}
