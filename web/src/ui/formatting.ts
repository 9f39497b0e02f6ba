/**
 * Markdown and colours for code. A worker reads them, so that a long conversation does not hold up the page; what it makes
 * is cleaned here, before it becomes part of the page. What cannot be formatted stays text.
 */
export interface Question {
  id: number;
  kind: "whole" | "blocks" | "colours";
  text: string;
  language: string;
}
export interface Answer {
  /** 0: the worker is ready. */
  id: number;
  /** Not clean. Nothing: the text could not be read. */
  html: string[];
}
interface Waiting {
  question: Question;
  settle: (html: string[]) => void;
}

const PATIENCE_MILLISECONDS = 10_000; // for one text: some are written to be read for hours
const MOST_KEPT = 2_000_000; // characters

const waiting = new Map<number, Waiting>();
let worker: Worker | undefined;
let isReady = false;
let timer: ReturnType<typeof setTimeout> | undefined;
let count = 0;
let cleaning: Promise<typeof import("./sanitize")> | undefined;

/** Fetch what formats, ahead of the first text. */
export function warmUp(): void {
  worker ??= start();
  void clean().catch(() => undefined); // the first text tries again
}

function clean(): Promise<typeof import("./sanitize")> {
  cleaning ??= import("./sanitize").catch((reason: Error) => {
    cleaning = undefined;
    throw reason;
  });
  return cleaning;
}

function start(): Worker {
  isReady = false;
  const started = new Worker(new URL("./formatting.worker.ts", import.meta.url), { type: "module" });
  started.addEventListener("message", ({ data }: MessageEvent<Answer>) => {
    if (worker !== started) return;
    isReady = true;
    const asked = waiting.get(data.id);
    waiting.delete(data.id);
    watch();
    asked?.settle(data.html);
  });
  started.addEventListener("error", () => worker === started && giveUp([...waiting.keys()])); // its script did not come
  return started;
}

/** Texts are read in order, so it is the first one that takes too long. */
function watch(): void {
  clearTimeout(timer);
  const first = waiting.keys().next().value;
  if (isReady && first !== undefined) timer = setTimeout(giveUp, PATIENCE_MILLISECONDS, [first]);
}

/** End the worker; these texts stay as they are, and a new worker reads the others. */
function giveUp(ids: number[]): void {
  worker?.terminate();
  worker = undefined;
  const given = ids.map((id) => waiting.get(id));
  for (const id of ids) waiting.delete(id);
  for (const one of given) one?.settle([]);
  for (const { question } of waiting.values()) (worker ??= start()).postMessage(question);
  watch();
}

function ask(kind: Question["kind"], text: string, language = ""): Promise<string[]> {
  worker ??= start();
  const question = { id: ++count, kind, text, language };
  return new Promise((settle) => {
    waiting.set(question.id, { question, settle });
    worker?.postMessage(question);
    if (waiting.size === 1) watch();
  });
}

const kept = new Map<string, string>();
let keptLength = 0;

/** The HTML of a text, or the colours of code in a language, if it was formatted before. */
export function known(text: string, language = ""): string | undefined {
  return kept.get(`${language}\n${text}`);
}

function keep(text: string, language: string, html: string): string {
  kept.set(`${language}\n${text}`, html);
  keptLength += language.length + 1 + text.length + html.length;
  for (const [oldest, old] of kept) {
    if (keptLength <= MOST_KEPT) break;
    kept.delete(oldest);
    keptLength -= oldest.length + old.length;
  }
  return html;
}

const underway = new Map<string, Promise<string>>();

function once(text: string, language: string, make: () => Promise<string>): Promise<string> {
  const key = `${language}\n${text}`;
  const found = kept.get(key);
  if (found !== undefined) return Promise.resolve(found);
  let made = underway.get(key);
  if (!made) {
    made = make().then((html) => (html ? keep(text, language, html) : html)).finally(() => underway.delete(key));
    underway.set(key, made);
  }
  return made;
}

/** Clean HTML of a text in Markdown, or '' where the text stays as it is. */
export function format(text: string): Promise<string> {
  return once(text, "", async () => {
    const [{ cleanText }, [html]] = await Promise.all([clean(), ask("whole", text)]);
    return html ? cleanText(html) : "";
  });
}

/** Clean HTML of a piece of code, or '' where it has no colours. */
export function colour(code: string, language: string): Promise<string> {
  return once(code, language, async () => {
    const [{ cleanColours }, [html]] = await Promise.all([clean(), ask("colours", code, language)]);
    return html ? cleanColours(html) : "";
  });
}

export interface Block {
  /** As the worker made it. Never shown. */
  raw: string;
  html: string;
}

/** Clean HTML of each block of a text that is still being written. What did not change since `before` is not cleaned again. */
export async function formatBlocks(text: string, before: readonly Block[]): Promise<Block[]> {
  const [{ cleanText }, blocks] = await Promise.all([clean(), ask("blocks", text)]);
  return blocks.map((raw, index) => {
    const old = before[index];
    return old?.raw === raw ? old : { raw, html: cleanText(raw) };
  });
}
