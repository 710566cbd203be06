// Large contents of which each octet costs as much as it can.

export const filled = (bytes: number, before: string, piece: string, after = ''): Buffer =>
  Buffer.from(
    before + piece.repeat(Math.floor((bytes - before.length - after.length) / piece.length)) + after,
    'latin1',
  )
export const numbered = (
  bytes: number,
  before: string,
  piece: (at: number) => string,
  after: string,
): Buffer => {
  let text = before
  for (let at = 0, next = piece(0); text.length + next.length + after.length <= bytes; ) {
    text += next
    at += 1
    next = piece(at)
  }
  return Buffer.from(text + after)
}

export type Made = (bytes: number, origin: string) => Buffer
const form = 'application/x-www-form-urlencoded'
const json = 'application/json'

/** Contents of a site, for its posts unless another path is given: what they are made of was slow to read once. */
export const costlyBodies: readonly (readonly [title: string, type: string, made: Made, path?: string])[] = [
  ['a form with a list of fields', form, (bytes) => filled(bytes, '_fields=', 'a,')],
  ['a form with a list of fields in escapes', form, (bytes) => filled(bytes, '_fields=', '%61,')],
  [
    'a form with many lists of fields',
    form,
    (bytes) => filled(bytes, '', `_fields[]=${'a,'.repeat(5_000)}&`),
  ],
  ['a form with a list of fields that are mapped', form, (bytes) => filled(bytes, '_embed=', 'wp_id,')],
  [
    'JSON with URLs of the site',
    json,
    (bytes, origin) => filled(bytes, '{"content":[', `"${origin}/index.php/site-json/site/a",`, '1]}'),
  ],
  [
    'JSON with names that are mapped',
    json,
    (bytes) => filled(bytes, '{"a":[', '{"wp_id":1234567890123},', '1]}'),
  ],
  ['a form with a list of tags', form, (bytes) => filled(bytes, 'tags=', '1,')],
  ['a form with a list of nothing', form, (bytes) => filled(bytes, 'tags=', ',')],
  ['JSON with a list of tags in a text', json, (bytes) => filled(bytes, '{"tags":"', '1,', '"}')],
  ['a form of octets that are no UTF-8', form, (bytes) => filled(bytes, 'content=', '\xff')],
  ['a form of escapes that are no UTF-8', form, (bytes) => filled(bytes, 'content=', '%ff')],
  [
    'a form of many texts that are no UTF-8',
    form,
    (bytes) => filled(bytes, '', `a[]=${'%ff'.repeat(5_000)}&`),
  ],
  ['a form of escapes', form, (bytes) => filled(bytes, 'content=', '%C3%A4')],
  ['a form of umlauts', form, (bytes) => filled(bytes, 'content=', '\xc3\xa4')],
  ['a form of plus signs', form, (bytes) => filled(bytes, 'content=', '+')],
  ['JSON of many names', json, (bytes) => numbered(bytes, '{', (at) => `"${at}x":1,`, '"y":1}')],
  [
    'JSON of many long names',
    json,
    (bytes) => numbered(bytes, '{', (at) => `"name ${at} of many":1,`, '"y":1}'),
  ],
  ['JSON of a long text', json, (bytes) => filled(bytes, '{"content":"', 'a', '"}')],
  [
    'a batch of many items',
    json,
    (bytes) => filled(bytes, '{"requests":[', '{"path":"/site/v2/posts"},', '{}]}'),
    '/batch/v1',
  ],
  [
    'a batch of items with many members',
    json,
    (bytes) =>
      numbered(bytes, '{"requests":[{"path":"/site/v2/posts","body":{', (at) => `"${at}x":1,`, '"y":1}}]}'),
    '/batch/v1',
  ],
]
