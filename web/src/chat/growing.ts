import type { RefObject } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { formatAhead } from "../ui/text";
import type { View } from "./lines";

/** Heights that nothing on a page falls below: too many lines at once take a moment longer, too few leave a gap above. */
const LOWEST = { tool: 34, text: 50, row: 20 };
const LONGEST_ROW = 130;
/** So few that a slow phone draws them between two touches of a finger. */
const STEP = 4;

/** Where the part of a conversation begins that fills a window from its end. */
export function endThatFills(views: readonly View[], height: number): number {
  let from = views.length;
  for (let left = height; from > 0 && left > 0; from--) {
    const view = views[from - 1]!;
    left -= view.kind === "tool" ? LOWEST.tool : LOWEST.text + LOWEST.row * Math.floor(view.text.length / LONGEST_ROW);
  }
  return from;
}

/** What has to be formatted before these are shown. */
export function textsOf(views: readonly View[]): string[] {
  return views.map((view) => (view.kind === "agent" ? view.text : ""));
}

/**
 * The part of a conversation that is shown: what fits in a window at once, and the rest above it piece by piece, each
 * formatted before it appears. A long conversation holds nobody up, and what is read does not move.
 */
export function useGrowing(id: string, views: readonly View[], scroller: RefObject<HTMLElement>): readonly View[] {
  const [top, setTop] = useState({ id: "", key: "" });
  const fromEnd = useRef<number>();
  const known = top.id === id ? views.findIndex((view) => view.key === top.key) : -1;
  const from = known < 0 ? endThatFills(views, innerHeight) : known;

  useEffect(() => {
    const first = views[from];
    if (!first) return undefined;
    if (known < 0) setTop({ id, key: first.key });
    const next = views[Math.max(0, from - STEP)];
    if (next === first || !next) return undefined;
    const more = async () => {
      await formatAhead(textsOf(views.slice(Math.max(0, from - STEP), from)));
      const box = scroller.current;
      if (isGone || !box) return;
      fromEnd.current = box.scrollHeight - box.scrollTop;
      setTop({ id, key: next.key });
    };
    let isGone = false;
    const timer = setTimeout(() => void more());
    return () => {
      isGone = true;
      clearTimeout(timer);
    };
  }, [id, views, from]);

  useLayoutEffect(() => {
    const box = scroller.current;
    if (box && fromEnd.current !== undefined) box.scrollTop = box.scrollHeight - fromEnd.current;
    fromEnd.current = undefined;
  }, [top]);

  return from ? views.slice(from) : views;
}
