// The cases that every client goes through, as in scripts/scenarios.py: prints what each scenario said as one JSON object.
export const model = "hermes";
export const STOP_AFTER = 3; // pieces of a stream that are read before the client leaves it
const VERBS = JSON.parse(process.env.CLIENT_VERBS);
const calls = [];

export const getWeather = (town) => {
  calls.push(town);
  return "rain, 9 °C";
};

export const codeIn = (text) => text.split("/approve ")[1].split(/\s/)[0].replace(/[,.]+$/, "");

export const refusalOf = async (asking) => {
  try {
    await asking;
    return "no error";
  } catch (error) {
    return error;
  }
};

const run = async (name, scenario) => {
  const [kind, variant] = name.split(" ");
  try {
    return await scenario([VERBS[kind], variant].filter(Boolean).join(" "));
  } catch (error) {
    console.error(error);
    return `${error.name}: ${error.status ?? error.statusCode ?? ""} ${error.message}`;
  }
};

// Retries wait for seconds between their tries, so they run beside the other scenarios.
export const main = async (scenarios, more = async () => ({})) => {
  const said = {};
  const later = [];
  for (const [name, scenario] of Object.entries(scenarios)) {
    if (name.startsWith("retry")) later.push(run(name, scenario).then((words) => (said[name] = words)));
    else said[name] = await run(name, scenario);
  }
  const extras = await more();
  await Promise.all(later);
  console.log(JSON.stringify({ said, weather_calls: calls.length, ...extras }));
};
