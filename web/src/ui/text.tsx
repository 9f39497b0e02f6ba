/** Text from chats, models and tools. All of it may be an attack: shown as text, kept inside its own box. */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import DOMPurify from "dompurify";
import { Marked } from "marked";
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

const marked = new Marked({ gfm: true, breaks: true, async: false });
marked.use({
  renderer: {
    html: ({ text }) => escape(text), // HTML in a message is text
    // Nothing is loaded from other hosts: a picture of a message becomes a link that a person may follow.
    image: ({ href, text }) => `<a href="${escape(href)}">🖼 ${escape(text || href)}</a>`,
    checkbox: ({ checked }) => (checked ? "☑ " : "☐ "),
  },
});

function escape(text: string): string {
  return text.replace(/[&<>"']/g, (mark) => `&#${mark.charCodeAt(0)};`);
}

const purify = DOMPurify(window);
purify.addHook("afterSanitizeAttributes", (node) => {
  if (node.tagName !== "A") return;
  const address = node.getAttribute("href") ?? "";
  if (!/^(https?|mailto):/i.test(address)) {
    node.removeAttribute("href");
    return;
  }
  node.setAttribute("target", "_blank");
  node.setAttribute("rel", "noopener noreferrer nofollow");
  node.setAttribute("title", visible(address.slice(0, 300)));
});
const ALLOWED = {
  ALLOWED_TAGS: [
    "p", "br", "strong", "em", "del", "code", "pre", "blockquote", "ul", "ol", "li", "a", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "table", "thead",
    "tbody", "tr", "th", "td",
  ],
  ALLOWED_ATTR: ["href", "class", "start", "align"],
  ALLOW_DATA_ATTR: false,
};

export function renderMarkdown(text: string): string {
  return purify.sanitize(marked.parse(text) as string, ALLOWED);
}

/** Markdown of the agent. `isOpen`: it is still being written, so code is not coloured yet. */
export function Markdown({ text, isOpen = false }: { text: string; isOpen?: boolean }) {
  const box = useRef<HTMLDivElement>(null);
  const isHuge = text.length > LONGEST_SHOWN || longestLine(text) > LONGEST_FIRST;
  const html = useMemo(() => (isHuge ? "" : renderMarkdown(text)), [text, isHuge]);
  useEffect(() => {
    const element = box.current;
    if (!element || isHuge) return undefined;
    let isGone = false;
    const blocks = [...element.querySelectorAll<HTMLElement>("pre > code")];
    for (const block of blocks) if (!isOpen) addCopy(block);
    for (const table of element.querySelectorAll("table")) table.tabIndex = 0;
    for (const block of element.querySelectorAll("pre")) block.tabIndex = 0;
    if (!isOpen && blocks.length) {
      void import("./highlight").then(({ highlight }) => {
        if (!isGone) for (const block of blocks) highlight(block);
      });
    }
    return () => {
      isGone = true;
    };
  }, [html, isOpen]);
  if (isHuge) return <PlainText text={text} />;
  return <div ref={box} class="markdown" dir="auto" dangerouslySetInnerHTML={{ __html: html }} />;
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
