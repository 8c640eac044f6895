import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import Anthropic from '@anthropic-ai/sdk';
import { assertArguments, assertPerson, citySchema, collect, key, limited, model, personSchema, prompts, unknownModel, url, within, wrongKey } from './gateway.js';

const client = new Anthropic({ apiKey: key, authToken: null, baseURL: url, maxRetries: 0 });
const max_tokens = 4096;
const user = (content) => [{ role: 'user', content }];
const tools = [{ name: 'get_weather', description: 'Weather of a city', input_schema: citySchema }];
const said = (message) => message.content.filter((b) => b.type === 'text').map((b) => b.text).join('');

suite('anthropic: messages', () => {
  test('a whole reply', async () => {
    const message = await client.messages.create({ model, max_tokens, messages: user(prompts.plain) });
    assert.equal(message.type, 'message');
    assert.equal(message.role, 'assistant');
    assert.equal(message.stop_reason, 'end_turn');
    assert.ok(said(message).length > 0);
    assert.ok(message.usage.input_tokens > 0 && message.usage.output_tokens > 0);
    assert.ok(message._request_id);
  });

  test('a stream', async () => {
    const events = await collect(await client.messages.create({ model, max_tokens, stream: true, messages: user(prompts.plain) }));
    assert.equal(events[0].type, 'message_start');
    assert.equal(events.at(-1).type, 'message_stop');
  });

  test('the stream helper ends with the message', async () => {
    const stream = client.messages.stream({ model, max_tokens, messages: user(prompts.plain) });
    let text = '';
    stream.on('text', (delta) => (text += delta));
    const message = await stream.finalMessage();
    assert.equal(message.stop_reason, 'end_turn');
    assert.equal(said(message), text);
    assert.ok(text.length > 0);
  });

  for (const stream of [false, true]) {
    test(`a tool's round trip, ${stream ? 'streamed' : 'whole'}`, async () => {
      const ask = async (messages) => {
        const body = { model, max_tokens, tools, messages };
        return stream ? client.messages.stream(body).finalMessage() : client.messages.create(body);
      };
      const first = await ask(user(prompts.tool));
      assert.equal(first.stop_reason, 'tool_use');
      const calls = first.content.filter((b) => b.type === 'tool_use');
      assert.equal(calls[0].name, 'get_weather');
      assertArguments(calls[0].input);
      const results = calls.map((c) => ({ type: 'tool_result', tool_use_id: c.id, content: 'rain' }));
      const second = await ask([...user(prompts.tool), { role: 'assistant', content: first.content }, ...user(results)]);
      assert.equal(second.stop_reason, 'end_turn');
      assert.ok(said(second).length > 0);
    });
  }

  test('output that keeps a schema', async () => {
    const message = await client.messages.create({
      model,
      max_tokens,
      messages: user(prompts.schema),
      output_config: { format: { type: 'json_schema', schema: personSchema } },
    });
    assertPerson(said(message));
  });

  test('tokens are counted', async () => {
    const count = await client.messages.countTokens({ model, messages: user(prompts.plain) });
    assert.ok(count.input_tokens > 0);
  });

  test('errors have the class the client knows', async () => {
    const wrong = new Anthropic({ apiKey: wrongKey, authToken: null, baseURL: url, maxRetries: 0 });
    await assert.rejects(wrong.messages.create({ model, max_tokens, messages: user('x') }), Anthropic.AuthenticationError);
    await assert.rejects(client.messages.create({ model, messages: user('x') }), (e) => {
      assert.ok(e instanceof Anthropic.BadRequestError, String(e));
      assert.equal(e.error.error.type, 'invalid_request_error');
      assert.equal(e.error.error.param, 'max_tokens');
      assert.ok(e.requestID);
      return true;
    });
    await assert.rejects(client.messages.create({ model: unknownModel, max_tokens, messages: user('x') }), Anthropic.NotFoundError);
    await assert.rejects(client.messages.create({ model: limited('messages-whole'), max_tokens, messages: user(prompts.rateLimit) }), Anthropic.RateLimitError);
    await assert.rejects(client.messages.create({ model: limited('messages-streamed'), max_tokens, stream: true, messages: user(prompts.rateLimit) }), Anthropic.RateLimitError);
  });

  test('a stream that fails in the middle throws', async () => {
    const stream = await client.messages.create({ model, max_tokens, stream: true, messages: user(prompts.midStream) });
    await assert.rejects(collect(stream), Anthropic.APIError);
  });

  test('a stream can be abandoned', async () => {
    const stream = await client.messages.create({ model, max_tokens, stream: true, messages: user(prompts.long) });
    const read = async () => {
      for await (const event of stream) {
        if (event.type === 'content_block_delta') stream.controller.abort();
      }
    };
    await within(60_000, read());
  });

  test('the model is listed', async () => {
    const models = await collect(client.models.list());
    assert.ok(models.some((m) => m.id === model));
  });
});
