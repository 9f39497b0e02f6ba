import { useState } from "preact/hooks";
import { api } from "../api/client";
import type { List, Skill, Toolset } from "../api/types";
import { useLive, useTitle } from "../hooks";
import { formatCount, t } from "../i18n";
import { Loading, PageHead, Search } from "../ui/parts";
import { oneLine, visible } from "../ui/text";

function fits(words: string, ...texts: (string | undefined)[]): boolean {
  return !words || texts.some((text) => text?.toLowerCase().includes(words.toLowerCase()));
}

export default function Skills() {
  useTitle(t("page_skills"));
  const [query, setQuery] = useState("");
  const skills = useLive((signal) => api.get<List<Skill>>("/v1/skills", {}, signal), [], []);
  const toolsets = useLive((signal) => api.get<List<Toolset>>("/v1/toolsets", {}, signal), [], []);
  const words = query.trim();
  return (
    <div class="page">
      <PageHead title={t("page_skills")} note={t("skillsNote")}><Search value={query} onInput={setQuery} label={t("search")} /></PageHead>
      <div class="stack">
        <section aria-label={t("skills")}>
          <h2 class="section">{t("skills")} {skills.data && <span class="faint">{formatCount(skills.data.data.length)}</span>}</h2>
          <Loading of={skills}>
            {(page) => page.data.length === 0 ? <p class="faint">{t("skillsEmpty")}</p> : (
              <ul class="tiles">
                {page.data.filter((one) => fits(words, one.name, one.description, one.category)).map((one) => (
                  <li key={one.name} class="card"><h3>{visible(one.name)} {one.category && <span class="chip">{visible(one.category)}</span>}</h3><p class="faint" dir="auto">{oneLine(one.description, 300)}</p></li>
                ))}
              </ul>
            )}
          </Loading>
        </section>
        <section aria-label={t("toolsets")}>
          <h2 class="section">{t("toolsets")}</h2>
          <Loading of={toolsets}>
            {(page) => (
              <div class="stack">
                {page.data.map((set) => ({ set, tools: set.tools.filter((one) => fits(words, set.name, one.name, one.description)) })).filter(({ tools }) => tools.length > 0).map(({ set, tools }) => (
                  <details key={set.name} class="card fold" open={words !== ""}>
                    <summary><strong>{visible(set.name)}</strong> <span class="faint">{formatCount(tools.length)}</span> {!set.enabled && <span class="state">{t("off")}</span>} {set.enabled && !set.configured && <span class="state wait">{t("needsSetup")}</span>}</summary>
                    <dl class="tools">
                      {tools.map((one) => <div key={one.name}><dt><code>{visible(one.name)}</code></dt><dd dir="auto">{oneLine(one.description, 400)}</dd></div>)}
                    </dl>
                  </details>
                ))}
              </div>
            )}
          </Loading>
        </section>
      </div>
    </div>
  );
}
