/** Takes everything out of HTML that could do more than show text. */
import DOMPurify from "dompurify";
import { visible } from "./text";

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
const OF_TEXT = {
  ALLOWED_TAGS: [
    "p", "br", "strong", "em", "del", "code", "pre", "blockquote", "ul", "ol", "li", "a", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "table", "thead",
    "tbody", "tr", "th", "td",
  ],
  ALLOWED_ATTR: ["href", "class", "start", "align"],
  ALLOW_DATA_ATTR: false,
};
const OF_COLOURS = { ALLOWED_TAGS: ["span"], ALLOWED_ATTR: ["class"], ALLOW_DATA_ATTR: false };

export function cleanText(html: string): string {
  return purify.sanitize(html, OF_TEXT);
}

export function cleanColours(html: string): string {
  return purify.sanitize(html, OF_COLOURS);
}
