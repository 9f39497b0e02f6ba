/** Pages have addresses, so that the back button, a second window and a bookmark work. */
import { signal } from "@preact/signals";
import { root } from "./api/client";

export const PAGES = [
  "chat", "overview", "messages", "approvals", "people", "jobs", "board", "sessions", "platforms", "skills", "models",
  "logs", "settings", "usage",
] as const;
export type Page = (typeof PAGES)[number];

export interface Route {
  page: Page;
  query: URLSearchParams;
}

function read(): Route {
  const last = location.pathname.split("/").filter(Boolean).at(-1) ?? "";
  const page = (PAGES as readonly string[]).includes(last) ? (last as Page) : "chat";
  return { page, query: new URLSearchParams(location.search) };
}

export const route = signal<Route>(read());
addEventListener("popstate", () => (route.value = read()));

export function href(page: Page, query: Record<string, string> = {}): string {
  const text = new URLSearchParams(query).toString();
  return `${root}/dashboard/${page}${text ? `?${text}` : ""}`;
}

export function go(page: Page, query: Record<string, string> = {}, replace = false): void {
  history[replace ? "replaceState" : "pushState"](null, "", href(page, query));
  route.value = read();
}

/** Follow links within the dashboard without loading the page anew; leave the rest to the browser. */
export function followLinks(event: MouseEvent): void {
  if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  const link = (event.target as Element | null)?.closest?.("a");
  if (!link || link.target || link.hasAttribute("download") || link.origin !== location.origin) return;
  const prefix = `${root}/dashboard/`;
  if (!link.pathname.startsWith(prefix) || link.hash) return;
  event.preventDefault();
  history.pushState(null, "", link.href);
  route.value = read();
}
