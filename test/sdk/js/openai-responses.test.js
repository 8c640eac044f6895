import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import OpenAI from 'openai';
import { ResponsesWS } from 'openai/resources/responses/ws';
import { assertArguments, assertPerson, citySchema, collect, key, limited, model, personSchema, prompts, unknownModel, url, within, wrongKey } from './gateway.js';

const client = new OpenAI({ apiKey: key, baseURL: `${url}/v1`, maxRetries: 0 });
const tools = [{ type: 'function', name: 'get_weather', description: 'Weather of a city', parameters: citySchema, strict: true }];
const outputs = (response) =>
  response.output
    .filter((item) => item.type === 'function_call')
    .map((item) => ({ type: 'function_call_output', call_id: item.call_id, output: '{"weather":"rain"}' }));

suite('openai: responses', () => {
  test('a whole reply', async () => {
    const response = await client.responses.create({ model, input: prompts.plain });
    assert.equal(response.object, 'response');
    assert.equal(response.status, 'completed');
    assert.ok(response.output_text.length > 0);
    assert.equal(response.usage.total_tokens, response.usage.input_tokens + response.usage.output_tokens);
  });

  test('a conversation', async () => {
    const conversation = await client.conversations.create({ metadata: { topic: 'demo' }, items: [{ role: 'user', content: 'My name is Ada.' }] });
    assert.equal(conversation.object, 'conversation');
    const response = await client.responses.create({ model, input: prompts.plain, conversation: conversation.id, store: false });
    assert.equal(response.conversation.id, conversation.id);
    await client.conversations.items.create(conversation.id, { items: [{ role: 'user', content: 'And goodbye.' }] });
    const items = await collect(client.conversations.items.list(conversation.id, { order: 'asc', limit: 2 }));
    assert.ok(items.length >= 4);
    assert.equal(items[0].content[0].text, 'My name is Ada.');
    assert.equal(items.at(-1).content[0].text, 'And goodbye.');
    const updated = await client.conversations.items.delete(items[0].id, { conversation_id: conversation.id });
    assert.equal(updated.id, conversation.id);
    assert.equal((await client.conversations.delete(conversation.id)).deleted, true);
    await assert.rejects(client.conversations.retrieve(conversation.id), (e) => e.status === 404);
  });

  test('a stream', async () => {
    const events = await collect(await client.responses.create({ model, input: prompts.plain, stream: true }));
    assert.equal(events[0].type, 'response.created');
    const last = events.at(-1);
    assert.equal(last.type, 'response.completed');
    const text = events.filter((e) => e.type === 'response.output_text.delta').map((e) => e.delta).join('');
    const said = last.response.output.filter((i) => i.type === 'message').flatMap((i) => i.content).map((p) => p.text).join('');
    assert.equal(text, said);
    assert.ok(text.length > 0);
  });

  test('the stream helper ends with the response', async () => {
    const response = await client.responses.stream({ model, input: prompts.plain }).finalResponse();
    assert.equal(response.status, 'completed');
    assert.ok(response.output_text.length > 0);
  });

  for (const stream of [false, true]) {
    const ask = async (body) => (stream ? client.responses.stream(body).finalResponse() : client.responses.create(body));

    test(`a tool's round trip with all items, ${stream ? 'streamed' : 'whole'}`, async () => {
      const input = [{ role: 'user', content: prompts.tool }];
      const first = await ask({ model, tools, input, store: false });
      const call = first.output.find((item) => item.type === 'function_call');
      assert.equal(call.name, 'get_weather');
      assertArguments(JSON.parse(call.arguments));
      const items = first.output.map(({ parsed_arguments, ...item }) => item);
      const second = await ask({ model, tools, input: [...input, ...items, ...outputs(first)], store: false });
      assert.ok(second.output_text.length > 0);
    });

    test(`a tool's round trip with the previous response, ${stream ? 'streamed' : 'whole'}`, async () => {
      const first = await ask({ model, tools, input: prompts.tool });
      const second = await ask({ model, tools, previous_response_id: first.id, input: outputs(first) });
      assert.equal(second.previous_response_id, first.id);
      assert.ok(second.output_text.length > 0);
    });
  }

  test('output that keeps a schema', async () => {
    const response = await client.responses.create({
      model,
      input: prompts.schema,
      text: { format: { type: 'json_schema', name: 'person', strict: true, schema: personSchema } },
    });
    assertPerson(response.output_text);
  });

  test('a stored response can be read and deleted', async () => {
    const made = await client.responses.create({ model, input: prompts.plain });
    const read = await client.responses.retrieve(made.id);
    assert.equal(read.output_text, made.output_text);
    await client.responses.delete(made.id);
    await assert.rejects(client.responses.retrieve(made.id), OpenAI.NotFoundError);
  });

  test('a stream can be read by its id from its first event on', async () => {
    const seen = [];
    for await (const event of await client.responses.create({ model, input: prompts.plain, stream: true })) {
      const id = event.response?.id;
      if (id) seen.push((await client.responses.retrieve(id)).status);
    }
    assert.ok(['in_progress', 'completed'].includes(seen[0]), seen[0]);
    assert.equal(seen.at(-1), 'completed');
  });

  test('errors have the class the client knows', async () => {
    const wrong = new OpenAI({ apiKey: wrongKey, baseURL: `${url}/v1`, maxRetries: 0 });
    await assert.rejects(wrong.responses.create({ model, input: 'x' }), OpenAI.AuthenticationError);
    await assert.rejects(client.responses.create({ model, input: 'x', temperature: 9 }), (e) => {
      assert.ok(e instanceof OpenAI.BadRequestError, String(e));
      assert.equal(e.param, 'temperature');
      return true;
    });
    await assert.rejects(client.responses.create({ model: unknownModel, input: 'x' }), OpenAI.NotFoundError);
    await assert.rejects(client.responses.create({ model: limited('responses-whole'), input: prompts.rateLimit }), OpenAI.RateLimitError);
    await assert.rejects(client.responses.create({ model: limited('responses-streamed'), input: prompts.rateLimit, stream: true }), OpenAI.RateLimitError);
  });

  test('a stream that fails in the middle ends with response.failed', async () => {
    const events = await collect(await client.responses.create({ model, input: prompts.midStream, stream: true }));
    const last = events.at(-1);
    assert.equal(last.type, 'response.failed');
    assert.equal(last.response.status, 'failed');
    assert.ok(last.response.error.message);
  });

  test('a stream can be abandoned', async () => {
    const stream = await client.responses.create({ model, input: prompts.long, stream: true });
    const read = async () => {
      for await (const event of stream) {
        if (event.type === 'response.output_text.delta') stream.controller.abort();
      }
    };
    await within(60_000, read());
  });
});

suite('openai: responses over a WebSocket', () => {
  // turn sends a message and returns the response when it has ended.
  const turn = (socket, message) =>
    new Promise((resolve, reject) => {
      const listen = (event) => {
        if (event.type === 'response.completed') resolve(event.response);
        if (event.type === 'response.failed') reject(new Error(JSON.stringify(event.response.error)));
        if (event.type === 'response.completed' || event.type === 'response.failed') socket.off('event', listen);
      };
      socket.on('event', listen);
      socket.on('error', reject);
      socket.send({ type: 'response.create', ...message });
    });

  test('turns that are not stored continue from the connection', async () => {
    const socket = new ResponsesWS(client);
    const warm = await turn(socket, { model, tools, input: [], store: false, generate: false });
    assert.deepEqual(warm.output, []);
    const first = await turn(socket, { model, tools, input: prompts.tool, store: false, previous_response_id: warm.id });
    const second = await turn(socket, { model, tools, store: false, previous_response_id: first.id, input: outputs(first) });
    assert.equal(second.previous_response_id, first.id);
    assert.ok(second.output.some((item) => item.type === 'message'));
    socket.close({ code: 1000, reason: 'done' });
  });

  test('an unknown previous response is an error and the connection stays', async () => {
    const socket = new ResponsesWS(client);
    const error = await new Promise((resolve) => {
      socket.on('error', resolve);
      socket.send({ type: 'response.create', model, input: 'hi', previous_response_id: 'resp_unknown' });
    });
    assert.match(JSON.stringify(error.error ?? error.message), /previous_response_not_found/);
    assert.equal((await turn(socket, { model, input: prompts.plain, store: false })).status, 'completed');
    socket.close({ code: 1000, reason: 'done' });
  });
});
