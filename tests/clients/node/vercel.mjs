// The Vercel AI SDK with each of its providers that can talk to the gateway, as its documentation uses it.
import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { embed, generateObject, generateText, stepCountIs, streamText, tool } from "ai";
import { z } from "zod";
import { STOP_AFTER, codeIn, getWeather, main, refusalOf } from "./scenarios.mjs";

const apiKey = process.env.OPENAI_API_KEY;
const baseURL = process.env.OPENAI_BASE_URL;
const compatible = createOpenAICompatible({ name: "hermes", baseURL, apiKey, includeUsage: true });
const models = {
  "": createOpenAI({ baseURL, apiKey }).chat("hermes"),
  compatible: compatible.chatModel("hermes"),
  responses: createOpenAI({ baseURL, apiKey }).responses("hermes"),
  messages: createAnthropic({ baseURL, apiKey })("hermes"),
};
const tools = {
  get_weather: tool({
    description: "The weather somewhere.",
    inputSchema: z.object({ town: z.string() }),
    execute: async ({ town }) => getWeather(town),
  }),
};
const stopWhen = stepCountIs(5);

const scenariosOf = (model) => {
  const answer = async (prompt) => (await generateText({ model, prompt })).text;
  const stream = async (prompt, more = {}) => {
    let text = "";
    for await (const piece of streamText({ model, prompt, ...more }).textStream) text += piece;
    return text;
  };
  const loop = async (prompt) => (await generateText({ model, tools, stopWhen, prompt })).text;
  const streamLoop = (prompt) => stream(prompt, { tools, stopWhen });
  const approval = async (prompt) => {
    const messages = [{ role: "user", content: prompt }];
    const first = await generateText({ model, messages });
    messages.push(...first.response.messages, { role: "user", content: `/approve ${codeIn(first.text)}` });
    return (await generateText({ model, messages })).text;
  };
  const stop = async (prompt) => {
    const leaving = new AbortController();
    let seen = 0;
    for await (const part of streamText({ model, prompt, abortSignal: leaving.signal }).fullStream) {
      if (part.type === "text-delta" && ++seen === STOP_AFTER) leaving.abort();
    }
    return seen;
  };
  const retry = async (prompt) => {
    const error = await refusalOf(generateText({ model, prompt })); // three tries, two and four seconds apart
    return `${error.name}: ${error.lastError?.statusCode ?? error.statusCode}`;
  };
  return { chat: answer, stream, own_tools: loop, gateway_tool: answer, both: streamLoop, approval, retry, stop };
};

const scenarios = {};
for (const [variant, model] of Object.entries(models)) {
  for (const [name, scenario] of Object.entries(scenariosOf(model))) {
    if (name === "stop" && variant === "responses") scenarios["stop stored"] = scenario;
    else scenarios[[name, variant].filter(Boolean).join(" ")] = scenario;
  }
}

const more = async () => {
  const met = { thought: {} };
  for (const [variant, model] of Object.entries(models)) {
    const streaming = streamText({ model, prompt: "think" });
    let parts = 0;
    for await (const part of streaming.fullStream) parts += part.type === "reasoning-delta";
    const { totalTokens } = await streaming.usage;
    const [text, finish, reasoning] = [await streaming.text, await streaming.finishReason, await streaming.reasoningText];
    met.thought[variant] = { text, finish, reasoning, parts, totalTokens };
  }
  const schema = z.object({ town: z.string() });
  met.object = (await generateObject({ model: models[""], schema, prompt: "object" })).object;
  met.embedding = (await embed({ model: compatible.textEmbeddingModel("embed-1"), value: "abc" })).embedding;
  return met;
};

await main(scenarios, more);
