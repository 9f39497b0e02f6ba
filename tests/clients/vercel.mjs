// The Vercel AI SDK against the gateway named by HERMES_URL, as its documentation uses it; prints what it met as JSON.
import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { embed, generateObject, generateText, stepCountIs, streamText, tool } from "ai";
import { z } from "zod";

const apiKey = process.env.HERMES_KEY;
const baseURL = `${process.env.HERMES_URL}/v1`;
const compatible = createOpenAICompatible({ name: "hermes", baseURL, apiKey, includeUsage: true });
const models = {
  compatible: compatible.chatModel("hermes"),
  chat: createOpenAI({ baseURL, apiKey }).chat("hermes"),
  responses: createOpenAI({ baseURL, apiKey }).responses("hermes"),
  messages: createAnthropic({ baseURL, apiKey })("hermes"),
};
const ran = [];
const weather = tool({
  description: "The weather somewhere.",
  inputSchema: z.object({ town: z.string() }),
  execute: async ({ town }) => {
    ran.push(town);
    return `rain in ${town}`;
  },
});
const met = {};

for (const [name, model] of Object.entries(models)) {
  const seen = (met[name] = {});
  seen.chat = (await generateText({ model, prompt: "hi" })).text;

  const streaming = streamText({ model, prompt: "think" });
  seen.parts = {};
  for await (const part of streaming.fullStream) seen.parts[part.type] = (seen.parts[part.type] ?? 0) + 1;
  seen.streamed = await streaming.text;
  seen.reasoning = await streaming.reasoningText;
  seen.usage = (await streaming.usage).totalTokens;
  seen.finish = await streaming.finishReason;

  ran.length = 0;
  const looped = await generateText({ model, tools: { weather }, stopWhen: stepCountIs(5), prompt: "weather" });
  seen.loop = { text: looped.text, steps: looped.steps.length, ran: [...ran] };
}

// The gateway's own tool, and both kinds in one turn, where its calls are no calls of the client.
for (const name of ["compatible", "chat", "messages"]) {
  const model = models[name];
  met[name].ours = (await generateText({ model, prompt: `write ${name}` })).text;
  ran.length = 0;
  const both = streamText({ model, tools: { weather }, stopWhen: stepCountIs(5), prompt: `both ${name}` });
  let text = "";
  for await (const piece of both.textStream) text += piece;
  met[name].both = { text, ran: [...ran] };
}

const schema = z.object({ town: z.string() });
met.object = (await generateObject({ model: models.chat, schema, prompt: "object" })).object;
met.embedding = (await embed({ model: compatible.textEmbeddingModel("embed-1"), value: "abc" })).embedding;
try {
  await generateText({ model: models.compatible, prompt: "fail", maxRetries: 0 });
} catch (error) {
  met.error = [error.name, error.statusCode];
}
console.log(JSON.stringify(met));
