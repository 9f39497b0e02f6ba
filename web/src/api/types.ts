/** Names for what the gateway answers. Where the contract says it, the type comes from there (`npm run types`). */
import type { components } from "./schema";

type Schemas = components["schemas"];
export type Session = Schemas["Session"] & { snippet?: string };
export type SessionLine = Omit<Schemas["SessionLine"], "content"> & { content: string | ContentPart[] | null };
export interface ContentPart {
  type: string;
  text?: string;
  image_url?: { url: string } | string;
  omitted_characters?: number;
}
export type Approval = Schemas["Approval"] & { is_long?: boolean; effect_sha256?: string | null; dangers?: string[] };
export type Job = Schemas["Job"];
export type JobSlot = Schemas["JobSlot"];
export type Task = Schemas["Task"] & {
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
