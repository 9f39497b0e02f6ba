/** The live connection: one stream of small events for the whole page; what they mean is fetched by whoever shows it. */
import { signal } from "@preact/signals";
import { ApiError, send, session } from "./client";
import { readEvents, type ServerEvent } from "./sse";

export type Connection = "connecting" | "open" | "lost" | "asleep";
export interface LiveEvent {
  kind: string;
  data: Record<string, unknown>;
}

const SILENCE_MILLISECONDS = 45_000; // the gateway writes a comment every 15 s
const FIRST_DELAY = 500;
const LONGEST_DELAY = 10_000;
const SLEEP_AFTER_MILLISECONDS = 60_000; // a hidden window gives its connection back: a browser has six per host

export const connection = signal<Connection>("connecting");
/** When the connection was lost, to say for how long. */
export const lostAt = signal<number | null>(null);

type Listener = (event: LiveEvent) => void;
const listeners = new Set<Listener>();

export function onLive(listener: Listener): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function publish(event: LiveEvent): void {
  for (const listener of [...listeners]) listener(event);
}

let stop: AbortController | null = null;
let running = false;
let lastId = "";
let wake: (() => void) | null = null;

function received(event: ServerEvent): void {
  if (event.id) lastId = event.id;
  let data: Record<string, unknown> = {};
  try {
    data = JSON.parse(event.data) as Record<string, unknown>;
  } catch {
    return; // not an event of ours
  }
  if (event.kind === "hello") return;
  publish({ kind: event.kind, data });
}

async function connectOnce(path: string): Promise<void> {
  stop = new AbortController();
  const headers: Record<string, string> = { Accept: "text/event-stream" };
  if (lastId) headers["Last-Event-ID"] = lastId;
  const response = await send("GET", path, { headers, signal: stop.signal });
  const wasLost = connection.value === "lost" && !lastId;
  connection.value = "open";
  lostAt.value = null;
  if (wasLost) publish({ kind: "reload", data: {} }); // nothing to resume from: fetch anew
  await readEvents(response, received, SILENCE_MILLISECONDS, stop);
}

function pause(milliseconds: number): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(done, milliseconds);
    function done(): void {
      clearTimeout(timer);
      wake = null;
      resolve();
    }
    wake = done;
  });
}

/** Keep the connection up until `disconnect`. A second call does nothing. */
export async function connect(path = "/api/events"): Promise<void> {
  if (running) return;
  running = true;
  let delay = FIRST_DELAY;
  while (running && session.value) {
    const began = Date.now();
    try {
      await connectOnce(path);
    } catch (error) {
      if (error instanceof ApiError && (error.status === 401 || error.status === 403 || error.status === 404)) break;
    }
    if (!running) break;
    if (connection.value === "asleep") {
      await pause(2 ** 31 - 1);
      connection.value = "connecting";
      continue;
    }
    if (Date.now() - began > LONGEST_DELAY) delay = FIRST_DELAY;
    connection.value = "lost";
    lostAt.value ??= Date.now();
    await pause(delay + Math.random() * 250);
    delay = Math.min(delay * 2, LONGEST_DELAY);
  }
  running = false;
}

export function disconnect(): void {
  running = false;
  lastId = "";
  stop?.abort();
  wake?.();
}

export function reconnectNow(): void {
  wake?.();
}

function sleep(): void {
  connection.value = "asleep";
  stop?.abort();
}

let sleepTimer: ReturnType<typeof setTimeout> | undefined;
document.addEventListener("visibilitychange", () => {
  clearTimeout(sleepTimer);
  if (document.hidden) sleepTimer = setTimeout(sleep, SLEEP_AFTER_MILLISECONDS);
  else wake?.();
});
// A page that was left may stay in the browser's memory, with its connections.
addEventListener("pagehide", sleep);
addEventListener("pageshow", () => wake?.());
addEventListener("online", () => wake?.());
