/** Names for what the gateway answers. Where the contract says it, the type comes from there (`npm run types`). */
import type { components } from "./schema";

type Schemas = components["schemas"];
export type Session = Schemas["Session"] & { snippet?: string; may_write?: boolean };
export type SessionLine = Omit<Schemas["SessionLine"], "content"> & { content: string | ContentPart[] | null; origin?: { platform: string; name: string } | null; is_taken_back?: boolean };
export interface ContentPart {
  type: string;
  text?: string;
  image_url?: { url: string } | string;
  omitted_characters?: number;
}
export type Approval = Schemas["Approval"] & { is_long?: boolean; effect_sha256?: string | null; dangers?: string[] };
export type Job = Schemas["Job"];
export type JobSlot = Schemas["JobSlot"];
export type Task = Omit<Schemas["Task"], "comments" | "runs"> & {
  comments?: { author?: string; actor?: string; text?: string; created_at?: number }[];
  runs?: Record<string, unknown>[];
};
export type Pairing = Schemas["Pairing"];
export type Skill = Schemas["Skill"];
export type Toolset = Schemas["Toolset"];
export interface List<T> {
  data: T[];
  has_more?: boolean;
  next_cursor?: string | null;
  next_before?: string | null;
  next_after?: number | null;
}

// What the dashboard's own routes answer.

export interface PlatformState {
  name: string;
  platform?: string;
  state: string;
  sentence: string;
  since?: number | null;
  last_frame_age: number | null;
  in_today?: number;
  out_today?: number;
  cure?: string | null;
  is_paused?: boolean;
}
export interface NodeState {
  name: string;
  state: string;
  host?: string;
  version?: string;
  is_this?: boolean;
  lanes?: number;
  accounts?: string[];
}
export interface Overview {
  sentence: string;
  is_well: boolean;
  state: string;
  remote: { url: string; state: string; sentence: string } | null;
  version: string;
  started_at: number;
  node: string;
  platforms: PlatformState[];
  nodes: NodeState[];
  messages: { in_today: number; out_today: number; waiting: number; oldest_age: number | null; answers_waiting?: number };
  latency: { p50: number | null; p95: number | null; count?: number };
  tokens_today: { in: number; out: number } | number;
  cost_today: number | null;
  alerts: string[];
  approvals_waiting: number;
  dead_letters: number;
  model?: { label: string; last_answer_age: number | null; note?: string | null } | null;
}
export interface MessageRow {
  id: string;
  direction: "in" | "out";
  at: number;
  platform: string;
  chat: string;
  person: string;
  kind: string;
  text: string;
  outcome: string;
  reason: string;
  state: string;
  turn_id: string | null;
  session_key: string;
  can_retry: boolean;
}
export interface TraceStep {
  at: number;
  kind: "in" | "turn" | "model" | "tool" | "ask" | "out";
  title: string;
  detail: string;
  state: string;
  seconds: number | null;
  id?: string;
}
export interface Trace {
  id: string;
  headline: string;
  outcome: string;
  turn: {
    id: string; state: string; model: string; prompt_tokens: number; completion_tokens: number; steps: number; attempts: number; reason: string;
    session_id: string; session_key: string; created_at: number; ended_at: number | null;
  } | null;
  steps: TraceStep[];
}
export interface Person {
  id: string;
  name: string;
  role: string;
  language: string;
  created_at: number;
  accounts: { platform: string; user_id: string; name: string }[];
  may_change: boolean;
}
export interface Grant {
  id: string;
  person_id: string;
  person: string;
  scope: string;
  subject: string;
  session_id: string | null;
  touches_host: boolean;
  granted_by: string;
  granted_at: number;
  reason: string;
}
export interface SignInRow {
  id: string;
  name: string;
  role: string;
  created_at: number;
  seen_at: number;
  expires_at: number;
  address: string;
  agent: string;
  is_this: boolean;
}
export interface PlatformSetting {
  name: string;
  label: string;
  help: string;
  is_secret: boolean;
  is_required: boolean;
  value: string | null;
  is_set: boolean;
  env: string | string[] | null;
}
export interface Platform {
  name: string;
  label: string;
  is_set_up: boolean;
  accounts: PlatformState[];
  settings: PlatformSetting[];
  has_login: boolean;
  get: string[];
  readme?: string;
}
export interface Login {
  state: "idle" | "starting" | "code" | "scanned" | "asking" | "done" | "failed";
  code?: string | null;
  modules?: string[] | null;
  lines?: string[];
  question?: string | null;
  sentence?: string | null;
  number?: number;
}
export interface Provider {
  name: string;
  label: string;
  is_ready: boolean;
  has_key: boolean;
  key_hint?: string | null;
  base_url?: string | null;
  default_model?: string | null;
  is_local?: boolean;
  is_current?: boolean;
  env?: string | string[] | null;
}
export interface Models {
  current: { provider: string; model: string; label: string };
  fallbacks: string[];
  routes: Record<string, string>;
  providers: Provider[];
}
export interface LogLine {
  at: number;
  level: string;
  source: string;
  text: string;
  fields: Record<string, unknown>;
}
export interface SettingRow {
  name: string;
  value: string | number | boolean | string[] | null;
  written?: string | null;
  source: string;
  default: string | number | boolean | string[] | null;
  type: "text" | "secret" | "flag" | "whole" | "number" | "list" | "choice" | "url";
  choices?: string[] | null;
  help: string;
  env: string[];
  is_set: boolean;
  is_secret: boolean;
  section: string;
  note?: string | null;
}
export interface UsageRow {
  day?: string;
  model?: string;
  person?: string;
  tokens_in: number;
  tokens_out: number;
  cost: number | null;
  turns: number;
  messages?: number;
}
export interface Usage {
  days: number;
  by_day: UsageRow[];
  by_model: UsageRow[];
  by_person: UsageRow[];
}
