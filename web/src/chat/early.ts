/** The conversation in the address of the page is asked for before anything is drawn: its words are what somebody waits for. */
import { address, api, type Query } from "../api/client";
import type { Session } from "../api/types";

const FRESH_MILLISECONDS = 10_000;
/** How many lines of a conversation are shown at first. */
export const TAIL = 120;

const asked = new Map<string, Promise<unknown>>();

export function pathOf(id: string): string {
  return `/api/sessions/${encodeURIComponent(id)}`;
}

/** What to ask for after a session, to see its last lines. */
export function tailOf(session: Session): { after: number; limit: number } {
  return { after: Math.max(0, session.message_count - TAIL), limit: 200 };
}

function ask<T>(path: string, query?: Query): Promise<T> {
  const answer = api.get<T>(path, query);
  asked.set(address(path, query), answer);
  setTimeout(() => asked.delete(address(path, query)), FRESH_MILLISECONDS);
  answer.catch(() => undefined); // `take` hands it to whoever shows it
  return answer;
}

export function askEarly(id: string): void {
  const path = pathOf(id);
  ask<Session>(path).then((session) => ask(`${path}/messages`, tailOf(session)), () => undefined); // the page says so
}

/** The answer that was asked for early, once; or ask now. */
export function take<T>(path: string, query?: Query): Promise<T> {
  const early = asked.get(address(path, query)) as Promise<T> | undefined;
  asked.delete(address(path, query));
  return early ?? api.get<T>(path, query);
}
