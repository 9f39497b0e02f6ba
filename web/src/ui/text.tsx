/** Text from chats, models and tools. All of it may be an attack: shown as text, kept inside its own box. */
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { formatCount, t } from "../i18n";
import { colour, format, formatBlocks, known, type Block } from "./formatting";
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

const FORMATTED_WITHIN_MILLISECONDS = 1000;
/** Somebody waited in vain: until a text is formatted, nobody waits again. */
let isLate = false;

/** Wait until these texts are formatted, so that they do not move when they are; but not long. Then they are shown as text first. */
export async function formatAhead(texts: readonly string[]): Promise<void> {
  const left = texts.filter((text) => text && !isHuge(text) && known(text) === undefined);
  if (!left.length) return;
  const all = Promise.allSettled(left.map(format)).then(() => { isLate = false; });
  if (!isLate) {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const late = new Promise<void>((done) => { timer = setTimeout(done, FORMATTED_WITHIN_MILLISECONDS); });
    await Promise.race([all, late.then(() => { isLate = true; })]);
    clearTimeout(timer);
  }
  await new Promise((next) => setTimeout(next)); // drawn in a task of its own: a finger on the page is not kept waiting
}

/** The HTML of a text, in one piece or, while it is being written, in several; undefined while it is shown as text. */
function useFormatted(text: string, isOpen: boolean): readonly string[] | undefined {
  const [made, setMade] = useState<{ text: string; blocks: Block[] }>();
  const latest = useRef({ text, isOpen });
  latest.current = { text, isOpen };
  const isBusy = useRef(false);
  const isGone = useRef(false);
  const staysText = isHuge(text);
  const done = isOpen || staysText ? undefined : known(text);

  useEffect(() => () => { isGone.current = true; }, []);
  useEffect(() => {
    async function follow(): Promise<void> {
      isBusy.current = true;
      let blocks: Block[] = [];
      let asked = { text: "", isOpen: false };
      const isBehind = () => asked.text !== latest.current.text || asked.isOpen !== latest.current.isOpen;
      while (!isGone.current && isBehind() && !isHuge(latest.current.text)) {
        asked = latest.current;
        try {
          blocks = asked.isOpen ? await formatBlocks(asked.text, blocks) : [{ raw: "", html: await format(asked.text) }];
        } catch {
          blocks = []; // the gateway is gone for now: text is shown as text
        }
        if (!isGone.current) setMade({ text: asked.text, blocks: blocks.filter((block) => block.html) });
      }
      isBusy.current = false;
    }
    if (done === undefined && !staysText && !isBusy.current) void follow();
  }, [text, isOpen]);

  if (done !== undefined) return [done];
  if (staysText) return undefined;
  // Words that were added meanwhile come with the next piece; other words are not what was formatted.
  return made?.blocks.length && text.startsWith(made.text.trimEnd()) ? made.blocks.map((block) => block.html) : undefined;
}

/** Markdown of the agent. `isOpen`: it is still being written, so that its last piece is not coloured yet. */
export function Markdown({ text, isOpen = false }: { text: string; isOpen?: boolean }) {
  const pieces = useFormatted(text, isOpen);
  if (!pieces) return <PlainText text={text} />;
  return (
    <div class="markdown" dir="auto">
      {pieces.map((html, index) => <Piece key={index} html={html} isDone={!isOpen || index < pieces.length - 1} />)}
    </div>
  );
}

/** A piece of Markdown. It keeps its elements while the pieces behind it are written: what is selected stays selected. */
function Piece({ html, isDone }: { html: string; isDone: boolean }) {
  const box = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return undefined;
    for (const wide of element.querySelectorAll<HTMLElement>("table, pre")) wide.tabIndex = 0;
    if (!isDone) return undefined;
    let isGone = false;
    // Code gets its colours when it is seen, or nearly.
    const near = new IntersectionObserver((seen) => {
      for (const one of seen) {
        if (!one.isIntersecting) continue;
        near.unobserve(one.target);
        const code = one.target.firstElementChild as HTMLElement;
        void colour(code.textContent ?? "", languageOf(code)).then((coloured) => { if (coloured && !isGone) code.innerHTML = coloured; }, () => undefined); // it stays without
      }
    }, { root: element.closest(".scroller"), rootMargin: "800px 0px" });
    for (const code of element.querySelectorAll<HTMLElement>("pre > code")) {
      addCopy(code);
      const language = languageOf(code);
      const before = language && known(code.textContent ?? "", language);
      if (before) code.innerHTML = before;
      else if (language && code.parentElement) near.observe(code.parentElement);
    }
    return () => {
      isGone = true;
      near.disconnect();
    };
  }, [html, isDone]);
  return <div ref={box} class="block" dangerouslySetInnerHTML={{ __html: html }} />;
}

function languageOf(code: Element): string {
  return /(?:^|\s)language-([\w+#-]+)/.exec(code.className)?.[1]?.toLowerCase() ?? "";
}

function isHuge(text: string): boolean {
  return text.length > LONGEST_SHOWN || longestLine(text) > LONGEST_FIRST;
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
