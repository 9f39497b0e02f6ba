// The official `openai` package for Node against the gateway named by OPENAI_BASE_URL; prints what it met as JSON.
import OpenAI from "openai";

const client = new OpenAI({ maxRetries: 0, timeout: 20000 });
const model = "hermes";
const messages = [{ role: "user", content: "hi" }];
const weather = {
  name: "get_weather",
  parameters: { type: "object", properties: { town: { type: "string" } }, required: ["town"] },
};
const met = {};

const refusal = async (asking) => {
  try {
    await asking;
    return "no error";
  } catch (error) {
    return [error.constructor.name, error.status, error.code];
  }
};

met.chat = (await client.chat.completions.create({ model, messages })).choices[0].message.content;

const stream = await client.chat.completions.create({
  model,
  messages,
  stream: true,
  stream_options: { include_usage: true },
});
met.streamed = "";
for await (const chunk of stream) {
  met.streamed += chunk.choices[0]?.delta?.content ?? "";
  if (chunk.usage) met.usage = chunk.usage.total_tokens;
}

const working = await client.chat.completions.create({
  model,
  messages: [{ role: "user", content: "look" }],
  stream: true,
});
met.worked = "";
for await (const chunk of working) met.worked += chunk.choices[0].delta.content ?? "";

const called = await client.chat.completions.create({
  model,
  messages: [{ role: "user", content: "weather" }],
  tools: [{ type: "function", function: weather }],
});
met.tool = called.choices[0].message.tool_calls[0].function;

const first = await client.responses.create({ model, input: "first" });
met.response = first.output_text;
met.chained = (await client.responses.create({ model, input: "second", previous_response_id: first.id })).output_text;
met.events = [];
for await (const event of await client.responses.create({ model, input: "third", stream: true })) {
  met.events.push(event.type);
}
const gathered = client.responses.stream({ model, input: "fourth" });
met.gathered = (await gathered.finalResponse()).output[0].content[0].text;
met.retrieved = (await client.responses.retrieve(first.id)).status;
await client.responses.delete(first.id);
met.deleted = await refusal(client.responses.retrieve(first.id));

met.models = [];
for await (const found of client.models.list()) met.models.push(found.id);

met.wrongKey = await refusal(new OpenAI({ apiKey: "hk_wrong", maxRetries: 0 }).models.list());
met.nonsense = await refusal(client.chat.completions.create({ model, messages: [] }));
met.failure = await refusal(client.chat.completions.create({ model, messages: [{ role: "user", content: "fail" }] }));

console.log(JSON.stringify(met));
