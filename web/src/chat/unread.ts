/** Which conversations have lines that nobody saw in this browser: when each was seen last. */
import { signal } from "@preact/signals";
import { remember, stored } from "../preferences";

const MOST = 300;

interface Seen {
  /** Everything older counts as seen: the first visit does not begin with a list full of marks. */
  since: number;
  at: Record<string, number>;
}

function read(): Seen {
  try {
    const kept = JSON.parse(stored("seen")) as Partial<Seen>;
    if (typeof kept.since === "number" && typeof kept.at === "object" && kept.at) return { since: kept.since, at: kept.at };
  } catch {
    // never kept, or not by us
  }
  return { since: Date.now() / 1000, at: {} };
}

const seen = signal<Seen>(read());
addEventListener("storage", (event) => {
  if (event.key === "hermes.seen") seen.value = read(); // another window of this browser saw it
});

export function isUnread(session: string, updatedAt: number | null | undefined): boolean {
  return (updatedAt ?? 0) > (seen.value.at[session] ?? seen.value.since) + 0.001;
}

export function markSeen(session: string, updatedAt: number | null | undefined): void {
  if (!isUnread(session, updatedAt)) return;
  const entries = Object.entries({ ...seen.peek().at, [session]: updatedAt ?? 0 }).sort(([, a], [, b]) => b - a);
  const since = Math.max(seen.peek().since, entries[MOST]?.[1] ?? 0);
  seen.value = { since, at: Object.fromEntries(entries.slice(0, MOST)) };
  remember("seen", JSON.stringify(seen.value));
}
