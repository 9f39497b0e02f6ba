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
  const key = address(path, query);
  asked.set(key, answer);
  setTimeout(() => asked.delete(key), FRESH_MILLISECONDS);
  answer.catch(() => asked.delete(key)); // somebody who signs in now asks again
  return answer;
}

export function askEarly(id: string): void {
  const path = pathOf(id);
  const session = ask<Session>(path);
  session.then((found) => void ask(`${path}/messages`, tailOf(found)), () => undefined); // the page asks again, and says why not
}

/** The answer that was asked for early, once; or ask now. */
export function take<T>(path: string, query?: Query): Promise<T> {
  const early = asked.get(address(path, query)) as Promise<T> | undefined;
  asked.delete(address(path, query));
  return early ?? api.get<T>(path, query);
}
