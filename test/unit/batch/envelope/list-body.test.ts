import { expect, test } from 'vitest'
import { envelopeItem } from '../../../../src/batch/envelope/read-envelope.ts'
import { interfaceItems } from '../../../../src/wordpress/batch.ts'

test.each([
  ['an object', { title: 'One' }, '{"title":"One"}', ['title']],
  ['a list, whose names are its places', ['One', 'Two'], '["One","Two"]', ['0', '1']],
  ['an empty list, which is none', [], undefined, []],
  ['an empty object, which is none', {}, undefined, []],
  ['null, which is none', null, undefined, []],
])('the body of an item is %s', (_what, body, content, names) => {
  const place = envelopeItem({ path: '/site/v2/posts/1', body }, 0, undefined, interfaceItems)
  expect(place).toMatchObject({ kind: 'item', bodyNames: names })
  if (place.kind === 'item') expect(place.item.content?.toString()).toBe(content)
})
