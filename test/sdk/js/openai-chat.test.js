import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import OpenAI from 'openai';
import { assertArguments, assertPerson, citySchema, collect, key, limited, model, personSchema, prompts, unknownModel, url, within, wrongKey } from './gateway.js';

const client = new OpenAI({ apiKey: key, baseURL: `${url}/v1`, maxRetries: 0 });
const user = (content) => [{ role: 'user', content }];
const tools = [{ type: 'function', function: { name: 'get_weather', description: 'Weather of a city', parameters: citySchema } }];

suite('openai: chat completions', () => {
  test('a whole reply', async () => {
    const { data, response } = await client.chat.completions.create({ model, messages: user(prompts.plain) }).withResponse();
    assert.equal(data.object, 'chat.completion');
    assert.equal(data.choices[0].message.role, 'assistant');
    assert.ok(data.choices[0].message.content.length > 0);
    assert.equal(data.choices[0].finish_reason, 'stop');
    assert.equal(data.usage.total_tokens, data.usage.prompt_tokens + data.usage.completion_tokens);
    assert.ok(data._request_id);
    assert.equal(response.headers.get('x-request-id'), data._request_id);
  });

  test('as many choices as asked for', async () => {
    const reply = await client.chat.completions.create({ model, n: 2, messages: user(prompts.plain) });
    assert.deepEqual(reply.choices.map((c) => c.index), [0, 1]);
  });

  test('a stream', async () => {
    const stream = await client.chat.completions.create({ model, stream: true, stream_options: { include_usage: true }, messages: user(prompts.plain) });
    const chunks = await collect(stream);
    assert.ok(chunks.map((c) => c.choices[0]?.delta?.content ?? '').join('').length > 0);
    assert.equal(chunks.flatMap((c) => c.choices).filter((c) => c.finish_reason).length, 1);
    assert.ok(chunks.at(-1).usage.total_tokens > 0);
  });

  test('the stream helper ends with the completion', async () => {
    const completion = await client.chat.completions.stream({ model, messages: user(prompts.plain) }).finalChatCompletion();
    assert.equal(completion.choices[0].finish_reason, 'stop');
    assert.ok(completion.choices[0].message.content.length > 0);
  });

  for (const stream of [false, true]) {
    test(`a tool's round trip, ${stream ? 'streamed' : 'whole'}`, async () => {
      const ask = async (messages) =>
        stream
          ? client.chat.completions.stream({ model, tools, messages }).finalChatCompletion()
          : client.chat.completions.create({ model, tools, messages });
      const first = (await ask(user(prompts.tool))).choices[0];
      assert.equal(first.finish_reason, 'tool_calls');
      const call = first.message.tool_calls[0];
      assert.equal(call.function.name, 'get_weather');
      assertArguments(JSON.parse(call.function.arguments));
      const results = first.message.tool_calls.map((c) => ({ role: 'tool', tool_call_id: c.id, content: '{"weather":"rain"}' }));
      const second = (await ask([...user(prompts.tool), first.message, ...results])).choices[0];
      assert.equal(second.finish_reason, 'stop');
      assert.ok(second.message.content.length > 0);
    });
  }

  test('output that keeps a schema', async () => {
    const reply = await client.chat.completions.parse({
      model,
      messages: user(prompts.schema),
      response_format: { type: 'json_schema', json_schema: { name: 'person', strict: true, schema: personSchema } },
    });
    assertPerson(reply.choices[0].message.content);
  });

  test('errors have the class the client knows', async () => {
    const wrong = new OpenAI({ apiKey: wrongKey, baseURL: `${url}/v1`, maxRetries: 0 });
    await assert.rejects(wrong.chat.completions.create({ model, messages: user('x') }), OpenAI.AuthenticationError);
    await assert.rejects(client.chat.completions.create({ model, temperature: 9, messages: user('x') }), (e) => {
      assert.ok(e instanceof OpenAI.BadRequestError, String(e));
      assert.equal(e.param, 'temperature');
      assert.equal(e.type, 'invalid_request_error');
      assert.ok(e.requestID);
      return true;
    });
    await assert.rejects(client.chat.completions.create({ model: unknownModel, messages: user('x') }), (e) => {
      assert.ok(e instanceof OpenAI.NotFoundError, String(e));
      assert.equal(e.code, 'model_not_found');
      return true;
    });
    await assert.rejects(client.chat.completions.create({ model: limited('chat-whole'), messages: user(prompts.rateLimit) }), OpenAI.RateLimitError);
    await assert.rejects(client.chat.completions.create({ model: limited('chat-streamed'), stream: true, messages: user(prompts.rateLimit) }), OpenAI.RateLimitError);
  });

  test('a stream that fails in the middle throws', async () => {
    const stream = await client.chat.completions.create({ model, stream: true, messages: user(prompts.midStream) });
    await assert.rejects(collect(stream), OpenAI.APIError);
  });

  test('a stream can be abandoned', async () => {
    const stream = await client.chat.completions.create({ model, stream: true, messages: user(prompts.long) });
    const read = async () => {
      for await (const chunk of stream) {
        if (chunk.choices[0]?.delta?.content) stream.controller.abort();
      }
    };
    await within(60_000, read());
  });

  test('the model is listed', async () => {
    const models = await collect(client.models.list());
    assert.ok(models.some((m) => m.id === model));
  });
});

suite('openai: completions', () => {
  test('a whole reply', async () => {
    const reply = await client.completions.create({ model, prompt: prompts.plain });
    assert.equal(reply.object, 'text_completion');
    assert.ok(reply.choices[0].text.length > 0);
  });

  test('a stream', async () => {
    const chunks = await collect(await client.completions.create({ model, prompt: prompts.plain, stream: true }));
    assert.ok(chunks.map((c) => c.choices[0]?.text ?? '').join('').length > 0);
  });
});
