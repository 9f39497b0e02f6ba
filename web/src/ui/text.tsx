/** Text from chats, models and tools. All of it may be an attack: shown as text, kept inside its own box. */
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { formatCount, t } from "../i18n";
import { toast } from "./toast";

const LONGEST_SHOWN = 60_000;
const LONGEST_FIRST = 20_000;

// Marks that turn the direction of writing or hide text. In names and commands they are shown by their number: a command
// must not read differently from what it does.
const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u202a-\u202e\u2028\u2029\u2060-\u2069\ufeff]/g;

export function visible(text: string): string {
  return text.replace(HIDDEN, (mark) => `⟨U+${mark.codePointAt(0)!.toString(16).toUpperCase().padStart(4, "0")}⟩`);
}

/** One line of somebody's text, for lists. */
export function oneLine(text: string | null | undefined, longest = 200): string {
  const short = (text ?? "").slice(0, longest * 2).replace(/\s+/g, " ").trim();
  return visible(short.length > longest ? `${short.slice(0, longest)}…` : short);
}

export function PlainText({ text, mono = false }: { text: string; mono?: boolean }) {
  const [isWhole, setWhole] = useState(false);
  const isLong = text.length > LONGEST_FIRST;
  const shown = isLong && !isWhole ? text.slice(0, LONGEST_FIRST / 4) : text.slice(0, 2_000_000);
  const Tag = mono ? "pre" : "div";
  return (
    <>
      <Tag class={mono ? "mono" : "plain"} dir="auto" tabIndex={mono ? 0 : undefined}>{mono ? visible(shown) : shown}</Tag>
      {isLong && !isWhole && <button class="link" onClick={() => setWhole(true)}>{t("showAll", { n: formatCount(text.length) })}</button>}
    </>
  );
}

let loaded: typeof import("./markdown") | undefined;
let colours: typeof import("./highlight") | undefined;

/** Fetch what draws Markdown, ahead of the first answer. */
export async function loadMarkdown(): Promise<void> {
  loaded ??= await import("./markdown");
}

/** Markdown of the agent. `isOpen`: it is still being written, so that its last piece is not coloured yet. */
export function Markdown({ text, isOpen = false }: { text: string; isOpen?: boolean }) {
  const [, setReady] = useState(loaded !== undefined);
  const before = useRef(new Map<string, string>());
  const isHuge = text.length > LONGEST_SHOWN || longestLine(text) > LONGEST_FIRST;
  const pieces = useMemo(() => {
    if (isHuge || !loaded) return undefined;
    if (!isOpen) return [loaded.renderMarkdown(text)];
    before.current = loaded.renderBlocks(text, before.current);
    return [...before.current.values()];
  }, [text, isHuge, isOpen, loaded]);
  useEffect(() => {
    if (!loaded && !isHuge) void loadMarkdown().then(() => setReady(true), () => undefined); // without it, text is shown as text
  }, [isHuge]);
  if (!pieces) return <PlainText text={text} />;
  return (
    <div class="markdown" dir="auto">
      {pieces.map((html, index) => <Block key={index} html={html} isDone={!isOpen || index < pieces.length - 1} />)}
    </div>
  );
}

/** A piece of Markdown. It keeps its elements while the pieces behind it are written: what is selected stays selected. */
function Block({ html, isDone }: { html: string; isDone: boolean }) {
  const box = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return undefined;
    for (const wide of element.querySelectorAll<HTMLElement>("table, pre")) wide.tabIndex = 0;
    const code = [...element.querySelectorAll<HTMLElement>("pre > code")];
    if (!isDone || !code.length) return undefined;
    for (const one of code) addCopy(one);
    if (colours) {
      for (const one of code) colours.highlight(one);
      return undefined;
    }
    let isGone = false;
    void import("./highlight").then((module) => {
      colours = module;
      for (const one of code) setTimeout(() => !isGone && module.highlight(one)); // a long page stays usable meanwhile
    }, () => undefined); // without it, code has no colours
    return () => {
      isGone = true;
    };
  }, [html, isDone]);
  return <div ref={box} class="block" dangerouslySetInnerHTML={{ __html: html }} />;
}

function longestLine(text: string): number {
  let longest = 0;
  let start = 0;
  for (let end = text.indexOf("\n"); end >= 0; end = text.indexOf("\n", start)) {
    longest = Math.max(longest, end - start);
    start = end + 1;
  }
  return Math.max(longest, text.length - start);
}

function addCopy(code: HTMLElement): void {
  const place = code.parentElement;
  if (!place || place.querySelector("button")) return;
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copy";
  button.textContent = t("copy");
  button.addEventListener("click", () => {
    void navigator.clipboard.writeText(code.textContent ?? "").then(() => toast(t("copied")), () => undefined);
  });
  place.append(button);
}
