// What the pages /chat and /images keep for their user: conversations of the account, which every browser in which the
// user signs in finds again. Each promise fails with the gateway's message.

export class Kept {
  constructor(base, token, page) { Object.assign(this, { base, token, page }); }

  async send(method, path, body) {
    const headers = { 'x-stagedoor-form': this.token, 'content-type': 'application/json' };
    const reply = await fetch(`${this.base}/conversations${path}`, { method, headers, body: body && JSON.stringify(body) });
    const answer = await reply.json().catch(() => undefined); // what stands before the gateway may answer with HTML
    if (answer && (reply.ok || method === 'DELETE' && answer.error?.code === 'conversation_not_found')) return answer;
    throw new Error(answer?.error?.message ?? `The gateway answered with status ${reply.status}.`);
  }

  // list returns up to 50 conversations, newest first, and in next the argument for those after them.
  list(after = '') { return this.send('GET', `?after=${encodeURIComponent(after)}`); }

  // create keeps a conversation with at most 20 items.
  async create(metadata, items) {
    return (await this.send('POST', '', { metadata: { page: this.page, ...metadata }, items })).id;
  }

  add(id, items) { return this.send('POST', `/${id}/items`, { items }); }

  describe(id, metadata) { return this.send('POST', `/${id}`, { metadata: { page: this.page, ...metadata } }); }

  // remove deletes a conversation. One that is gone already is no error.
  remove(id) { return this.send('DELETE', `/${id}`); }

  get(id) { return this.send('GET', `/${id}`); }

  // items returns one page of items, with their pictures.
  items(id, query) {
    return this.send('GET', `/${id}/items?${new URLSearchParams({ include: 'message.input_image.image_url', ...query })}`);
  }

  // allItems returns all items, the oldest first.
  async allItems(id) {
    const all = [];
    for (let after; ;) {
      const page = await this.items(id, { limit: 100, order: 'asc', ...(after ? { after } : {}) });
      all.push(...page.data);
      if (!page.has_more) return all;
      after = page.last_id;
    }
  }
}

// message returns an item of a conversation.
export const message = (role, ...content) => ({ type: 'message', role, content });
export const words = (text) => ({ type: 'input_text', text });
export const image = (url) => ({ type: 'input_image', image_url: url });

// blobOf returns the bytes of a data URL, which the policy of the pages does not let an element load.
export function blobOf(url) {
  const [, type, data] = /^data:([^;,]*);base64,(.*)$/s.exec(url) ?? [];
  return type === undefined ? undefined : new Blob([Uint8Array.from(atob(data), (c) => c.charCodeAt(0))], { type });
}

// urlOf returns a data URL of a blob.
export const urlOf = (blob) => new Promise((resolve, reject) => {
  const reader = new FileReader();
  reader.onload = () => resolve(reader.result);
  reader.onerror = () => reject(reader.error);
  reader.readAsDataURL(blob);
});
