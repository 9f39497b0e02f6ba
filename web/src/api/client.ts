/** Requests to the gateway: the cookie goes by itself, the CSRF token with everything that changes something. */
import { signal } from "@preact/signals";
import { forgetDrafts } from "../chat/drafts";

export interface SignedIn {
  name: string;
  role: string;
  csrf: string;
  language?: string;
  version?: string;
  node?: string;
  pages?: string[];
  [field: string]: unknown;
}

/** `undefined`: not known yet; `null`: nobody is signed in. */
export const session = signal<SignedIn | null | undefined>(undefined);

/** The base path behind a reverse proxy (`dashboard.base_path`), which the gateway writes into the page. */
export const root = document.querySelector<HTMLMetaElement>('meta[name="base"]')?.content ?? "";

export class ApiError extends Error {
  constructor(
    readonly status: number,
    message: string,
    readonly code: string = "",
    readonly body: unknown = null,
  ) {
    super(message);
  }

  /** The session that took the place of the one that was asked. */
  get next(): string {
    const error = (this.body as { error?: { session_id?: string | null } } | null)?.error;
    return error?.session_id ?? "";
  }
}

export type Query = Record<string, string | number | boolean | null | undefined>;

export function address(path: string, query: Query = {}): string {
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== null && value !== "") params.set(name, String(value));
  }
  const text = params.toString();
  return `${root}${path}${text ? `?${text}` : ""}`;
}

export interface Asking {
  query?: Query;
  body?: unknown;
  headers?: Record<string, string>;
  signal?: AbortSignal;
}

const PATIENCE_MILLISECONDS = 60_000;

export async function send(method: string, path: string, asking: Asking = {}): Promise<Response> {
  const headers: Record<string, string> = { Accept: "application/json", ...asking.headers };
  if (method !== "GET" && session.value) headers["X-Hermes-CSRF"] = session.value.csrf;
  if (asking.body !== undefined) headers["Content-Type"] = "application/json";
  const response = await fetch(address(path, asking.query), {
    method,
    headers,
    body: asking.body === undefined ? null : JSON.stringify(asking.body),
    credentials: "same-origin",
    cache: "no-store",
    signal: asking.signal ?? AbortSignal.timeout(PATIENCE_MILLISECONDS),
  });
  if (response.ok) return response;
  const error = await failure(response);
  // A request with the wrong cookie was made by nobody: show the sign-in screen. The sign-in itself says why it failed.
  if (response.status === 401 && path !== "/api/dashboard/sign-in") session.value = null;
  throw error;
}

async function failure(response: Response): Promise<ApiError> {
  const text = await response.text();
  try {
    const body = JSON.parse(text) as { error?: { message?: string; code?: string | null } };
    return new ApiError(response.status, body.error?.message ?? text.slice(0, 300), body.error?.code ?? "", body);
  } catch {
    return new ApiError(response.status, text.slice(0, 300) || response.statusText || String(response.status));
  }
}

async function json<T>(method: string, path: string, asking: Asking): Promise<T> {
  const response = await send(method, path, asking);
  return (response.status === 204 ? null : await response.json()) as T;
}

export const api = {
  get: <T>(path: string, query?: Query, signal?: AbortSignal): Promise<T> => json<T>("GET", path, { query, signal }),
  post: <T>(path: string, body?: unknown, headers?: Record<string, string>): Promise<T> =>
    json<T>("POST", path, { body: body ?? {}, headers }),
  patch: <T>(path: string, body: unknown): Promise<T> => json<T>("PATCH", path, { body }),
  put: <T>(path: string, body: unknown): Promise<T> => json<T>("PUT", path, { body }),
  remove: <T>(path: string): Promise<T> => json<T>("DELETE", path, {}),
};

export async function loadSession(): Promise<void> {
  try {
    session.value = await api.get<SignedIn>("/api/dashboard/session");
  } catch (error) {
    if (error instanceof ApiError && (error.status === 401 || error.status === 404)) session.value = null;
    else throw error;
  }
}

export async function signIn(proof: { code: string } | { key: string }): Promise<void> {
  const signed = await api.post<SignedIn>("/api/dashboard/sign-in", proof);
  session.value = signed; // its CSRF token is needed from here on
  await loadSession();
}

export async function signOut(): Promise<void> {
  forgetDrafts();
  await api.post("/api/dashboard/sign-out");
  session.value = null;
}

export function mayOpen(page: string): boolean {
  const pages = session.value?.pages;
  return !pages || pages.includes(page);
}
