// What pages that ask a model share: one request whose reply streams, with what was measured, and its receipt.

// events yields the data of server-sent events until the last one.
async function* events(body) {
  let text = '';
  for await (const piece of body.pipeThrough(new TextDecoderStream())) {
    text += piece;
    const all = text.split('\n\n');
    text = all.pop();
    for (const event of all) {
      const data = event.split('\n').filter((l) => l.startsWith('data:')).map((l) => l.slice(5).trim()).join('\n');
      if (data === '[DONE]') return;
      if (data) yield JSON.parse(data);
    }
  }
}

// stream posts a body of chat completions and passes each piece of the reply to hear(text, calls), where calls are
// pieces of tool calls. It returns what was measured, in milliseconds and tokens. Its error has the gateway's message.
export async function stream(url, headers, body, hear, signal) {
  const from = performance.now();
  const reply = await fetch(url, {
    method: 'POST', signal, headers: { ...headers, 'content-type': 'application/json' },
    body: JSON.stringify({ ...body, stream: true, stream_options: { include_usage: true } }),
  });
  if (!reply.ok) throw new Error((await reply.json().catch(() => ({}))).error?.message ?? `The gateway answered with status ${reply.status}.`);
  let first;
  let usage;
  let end;
  for await (const chunk of events(reply.body)) {
    if (chunk.error) throw new Error(chunk.error.message);
    const choice = chunk.choices?.[0];
    usage = chunk.usage ?? usage;
    end = choice?.finish_reason ?? end;
    const { content, tool_calls: calls } = choice?.delta ?? {};
    if (!content && !calls) continue;
    first ??= performance.now();
    hear(content ?? '', calls ?? []);
  }
  const took = performance.now() - (first ?? from);
  return {
    id: reply.headers.get('x-request-id'), losses: reply.headers.get('x-stagedoor-losses'), degraded: reply.headers.get('x-structured-output-degraded'),
    first: first && first - from, took: performance.now() - from, usage, end,
    rate: usage && took > 0 ? usage.completion_tokens / (took / 1000) : undefined,
  };
}

// receipt returns the receipt of a request, or undefined if it has none: requests without a price may have none. It is
// written shortly after the reply, so that it is asked for again after each of the waits.
export async function receipt(url, headers, waits = [0, 300, 900]) {
  for (const wait of waits) {
    await new Promise((resolve) => setTimeout(resolve, wait));
    const reply = await fetch(url, { headers });
    if (reply.ok) return reply.json();
  }
  return undefined;
}

export const seconds = (ms) => (ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(ms < 10_000 ? 2 : 1)} s`);

// money writes micro-dollars: with two decimals from one cent up, and below with at most four.
export function money(micros) {
  if (!(micros > 0)) return 'no charge';
  if (micros < 100) return '<$0.0001';
  return `$${(micros / 1e6).toFixed(micros < 10_000 ? 4 : 2)}`;
}
