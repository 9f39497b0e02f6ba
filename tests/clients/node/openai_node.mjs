// The official `openai` package for Node on both APIs, with its ordinary retries.
import OpenAI from "openai";
import { STOP_AFTER, codeIn, getWeather, main, model, refusalOf } from "./scenarios.mjs";

const client = new OpenAI({ timeout: 60000 });
const parameters = { type: "object", properties: { town: { type: "string" } }, required: ["town"] };
const tools = [{ type: "function", function: { name: "get_weather", parameters } }];
const flat = [{ type: "function", name: "get_weather", parameters, strict: false }];
const user = (content) => [{ role: "user", content }];

const create = (messages, more = {}) => client.chat.completions.create({ model, messages, ...more });
const answer = async (text) => (await create(user(text))).choices[0].message.content;

const stream = async (text) => {
  let words = "";
  for await (const chunk of await create(user(text), { stream: true })) words += chunk.choices[0].delta.content ?? "";
  return words;
};

const loop = async (text) => {
  const messages = user(text);
  for (let leg = 0; leg < 4; leg++) {
    const { message } = (await create(messages, { tools })).choices[0];
    if (!message.tool_calls?.length) return message.content;
    messages.push(message);
    for (const call of message.tool_calls) {
      messages.push({ role: "tool", tool_call_id: call.id, content: getWeather(call.function.arguments) });
    }
  }
  return "no end";
};

const approval = async (text) => {
  const question = await answer(text);
  const talk = [...user(text), { role: "assistant", content: question }, ...user(`/approve ${codeIn(question)}`)];
  return (await create(talk)).choices[0].message.content;
};

const stop = async (text) => {
  const chunks = await create(user(text), { stream: true });
  let seen = 0;
  for await (const _ of chunks) if (++seen === STOP_AFTER) break; // the package closes the connection
  return seen;
};

// /v1/responses

const respond = (input, more = {}) => client.responses.create({ model, input, ...more });
const respondText = async (text) => (await respond(text)).output_text;

const responseStream = async (text) => {
  const final = await client.responses.stream({ model, input: text }).finalResponse();
  return final.output.filter((item) => item.type === "message").at(-1).content[0].text;
};

const responseLoop = async (text) => {
  let answered = await respond(text, { tools: flat });
  for (let leg = 0; leg < 4; leg++) {
    const outputs = answered.output
      .filter((item) => item.type === "function_call")
      .map((item) => ({ type: "function_call_output", call_id: item.call_id, output: getWeather(item.arguments) }));
    if (!outputs.length) return answered.output_text;
    answered = await respond(outputs, { previous_response_id: answered.id, tools: flat });
  }
  return "no end";
};

const responseApproval = async (text) => {
  const first = await respond(text);
  const [asked] = first.output.filter((item) => item.type === "mcp_approval_request");
  const approved = { type: "mcp_approval_response", approval_request_id: asked.id, approve: true };
  return (await respond([approved], { previous_response_id: first.id })).output_text;
};

const responseStop = async (text) => {
  let seen = 0;
  let id = "";
  for await (const event of await respond(text, { stream: true })) {
    if (event.type === "response.created") id = event.response.id;
    if (event.type === "response.output_text.delta" && ++seen === STOP_AFTER) break;
  }
  await client.responses.cancel(id);
  return seen;
};

const told = async (asking) => {
  const { constructor, status, code } = await refusalOf(asking);
  return [constructor.name, status, code];
};

const more = async () => {
  const met = {};
  const counted = await create(user("hi"), { stream: true, stream_options: { include_usage: true } });
  for await (const chunk of counted) if (chunk.usage) met.usage = chunk.usage.total_tokens;
  const first = await respond("first");
  met.chained = (await respond("second", { previous_response_id: first.id })).output_text;
  met.events = [];
  for await (const event of await respond("third", { stream: true })) met.events.push(event.type);
  met.retrieved = (await client.responses.retrieve(first.id)).status;
  await client.responses.delete(first.id);
  met.deleted = await told(client.responses.retrieve(first.id));
  met.models = [];
  for await (const found of client.models.list()) met.models.push(found.id);
  met.wrongKey = await told(new OpenAI({ apiKey: "hk_wrong" }).models.list());
  met.nonsense = await told(create([]));
  return met;
};

await main(
  {
    chat: answer,
    "chat responses": respondText,
    stream,
    "stream responses": responseStream,
    own_tools: loop,
    "own_tools responses": responseLoop,
    gateway_tool: answer,
    "gateway_tool responses": respondText,
    both: loop,
    "both responses": responseLoop,
    approval,
    "approval responses": responseApproval,
    retry: answer,
    "retry responses": respondText,
    stop,
    "stop responses": responseStop,
  },
  more,
);
