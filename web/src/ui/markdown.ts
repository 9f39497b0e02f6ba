/** Markdown of the agent as HTML. What comes out is not clean yet: only `sanitize.ts` makes it fit for a page. */
import { Marked } from "marked";

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

export function renderMarkdown(text: string): string {
  return marked.parse(text) as string;
}

/** The HTML of each paragraph, list or piece of code of a text that is still being written. */
export function renderBlocks(text: string): string[] {
  return marked.lexer(text).filter((token) => token.type !== "space" && token.type !== "def").map((token) => marked.parser([token]));
}
