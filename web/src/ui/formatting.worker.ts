/** Reads Markdown and colours code beside the page, which stays free for the person in front of it. */
import type { Answer, Question } from "./formatting";
import { renderBlocks, renderMarkdown } from "./markdown";

async function answer({ kind, text, language }: Question): Promise<string[]> {
  if (kind === "whole") return [renderMarkdown(text)];
  if (kind === "blocks") return renderBlocks(text);
  const { highlight } = await import("./highlight"); // with the first piece of code
  return [highlight(text, language)];
}

addEventListener("message", ({ data }: MessageEvent<Question>) => {
  const reply = (html: string[]) => postMessage({ id: data.id, html } satisfies Answer);
  answer(data).then(reply, () => reply([])); // text that cannot be read is shown as it is
});
postMessage({ id: 0, html: [] } satisfies Answer); // ready
