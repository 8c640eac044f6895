// Where the gateway under test is, and what every suite asks of it. The gateway must
// serve the models `any` and `limited-*`, answered by the sandbox (directly or as an
// upstream), and no model `no-such-model`.
import assert from 'node:assert/strict';

function need(name) {
  const value = process.env[name];
  assert.ok(value, `${name} is not set; start the suite with ../run.sh`);
  return value;
}

export const url = need('STAGEDOOR_URL').replace(/\/$/, '');
export const key = need('STAGEDOOR_KEY');
export const model = 'any';
// limited names a model whose provider a test may make refuse without making others wait.
export const limited = (name) => `limited-js-${name}`;
export const unknownModel = 'no-such-model';
export const wrongKey = 'sd-wrong-key';

// Prompts with which the sandbox behaves in a certain way.
export const prompts = {
  plain: 'Say something short. [sandbox: pace=max]',
  tool: 'Please use the get_weather tool for Oslo. [sandbox: pace=max]',
  schema: 'Describe a person. [sandbox: pace=max]',
  rateLimit: 'Hello [sandbox: status=429]',
  midStream: 'Hello [sandbox: tokens=40 error=10 pace=max]',
  long: 'Tell a long story [sandbox: tokens=2000]',
};

export const citySchema = {
  type: 'object',
  properties: { city: { type: 'string' } },
  required: ['city'],
  additionalProperties: false,
};

export const personSchema = {
  type: 'object',
  properties: { name: { type: 'string' }, age: { type: 'integer' } },
  required: ['name', 'age'],
  additionalProperties: false,
};

// assertPerson holds a reply's text against personSchema.
export function assertPerson(text) {
  const person = JSON.parse(text);
  assert.deepEqual(Object.keys(person).sort(), ['age', 'name'], text);
  assert.equal(typeof person.name, 'string', text);
  assert.ok(Number.isInteger(person.age), text);
}

// assertArguments holds a tool call's arguments against citySchema.
export function assertArguments(args) {
  assert.deepEqual(Object.keys(args), ['city']);
  assert.equal(typeof args.city, 'string');
}

// collect reads a stream to its end.
export async function collect(stream) {
  const items = [];
  for await (const item of stream) items.push(item);
  return items;
}

// within fails when a promise takes longer than a limit.
export async function within(milliseconds, promise) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`took longer than ${milliseconds} ms`)), milliseconds);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
