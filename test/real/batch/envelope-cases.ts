import { type BatchCase, batch, create, update } from './batch-case.ts'

const one = update('posts/99?_fields=id,title.raw', { title: 'e' })
const two = update('posts/100?_fields=id,title.raw', { title: 'f' })
const three = update('posts/101?_fields=id,title.raw', { title: 'g' })
const form = 'application/x-www-form-urlencoded'
const json = 'application/json'

const formOf = (...items: readonly (readonly [path: string, title: string])[]): string =>
  items
    .map(
      ([path, title], at) =>
        `requests[${at}][method]=PUT&requests[${at}][path]=${encodeURIComponent(path)}&requests[${at}][body][title]=${title}`,
    )
    .join('&')

/** The envelope itself: what makes it one, and the ways it is written. */
export const envelopeCases: readonly BatchCase[] = [
  batch('no items', []),
  batch('25 items', Array(25).fill(one)),
  batch('26 items', Array(26).fill(one)),
  { title: 'no requests', envelope: {} },
  batch('requests that are no list', 'x'),
  batch('requests that are an object', { a: one, b: two }),
  batch('an item that is no object', [one, 'x']),
  batch('an item without a path', [one, { method: 'PUT' }]),
  batch('a path that is no text', [one, { path: 7 }]),
  batch('a method that is none', [one, { ...two, method: 'FOO' }]),
  batch('GET', [one, { ...two, method: 'GET' }]),
  batch('a method in lower case', [one, { ...two, method: 'put' }]),
  batch('a body that is text', [one, { ...two, body: 'x' }]),
  batch('headers that are no object', [one, { ...two, headers: 'x' }]),
  batch('a header that is an object', [one, { ...two, headers: { 'X-A': { b: 1 } } }]),
  batch('unknown members of an item', [{ ...one, id: 'a', dependsOn: [] }, two, three]),
  { title: 'an unknown validation', envelope: { validation: 'sometimes', requests: [one] } },
  { title: 'normal validation', envelope: { validation: 'normal', requests: [one, two, three] } },
  {
    title: 'all must validate, and do',
    envelope: { validation: 'require-all-validate', requests: [one, two, three] },
  },
  {
    title: 'all must validate, one does not',
    envelope: {
      validation: 'require-all-validate',
      requests: [one, create('posts', { status: 'bogus' }), two, { path: 'http:///' }, create('media', {})],
    },
  },
  {
    title: 'all must validate, two do not',
    envelope: {
      validation: 'require-all-validate',
      requests: [one, create('posts', { status: 'bogus' }), two, create('media', {})],
    },
  },
  {
    title: 'all must validate, and what fails is no matter of validation',
    envelope: { validation: 'require-all-validate', requests: [one, update('posts/999999', {}), two] },
  },
  {
    title: 'a form',
    raw: {
      type: form,
      content: formOf(
        ['/wp/v2/posts/99?_fields=id', 'a'],
        ['/wp/v2/posts/100?_fields=id', 'b'],
        ['/wp/v2/posts/101?_fields=id', 'c'],
      ),
    },
  },
  {
    title: 'a query',
    raw: { type: form, content: '' },
    query: `?${formOf(['/wp/v2/posts/99?_fields=id,title.raw', 'q'])}`,
  },
  {
    title: 'a query and a body',
    envelope: { requests: [one] },
    query: '?validation=require-all-validate',
  },
  { title: 'JSON that is none', raw: { type: json, content: '{"requests":[' } },
  { title: 'a list', raw: { type: json, content: '[]' } },
  { title: 'nothing', raw: { type: json, content: '' } },
  {
    title: 'JSON with a charset',
    raw: {
      type: 'application/json; charset=utf-8',
      content: JSON.stringify({ requests: [one, two, three] }),
    },
  },
  {
    title: 'repeated members',
    raw: { type: json, content: `{"requests":[],"requests":[${JSON.stringify(one)}]}` },
  },
  { ...batch('GET of the route', []), method: 'GET' },
  { ...batch('PUT to the route', [one]), method: 'PUT' },
  { ...batch('_fields of the whole', [one, two, three]), query: '?_fields=responses' },
  { ...batch('_fields of a part', [one]), query: '?_fields=responses.status' },
  { ...batch('_envelope of the whole', [one]), query: '?_envelope=1' },
  { ...batch('a bad nonce', [one]), headers: { 'X-WP-Nonce': 'bad' } },
  batch('nobody sends 26', Array(26).fill(one), { as: 'nobody' }),
]
