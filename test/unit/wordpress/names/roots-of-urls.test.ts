import { expect, test } from 'vitest'
import { jsonHeaders, names, publicRoot, upstreamRoot } from './wordpress-names.ts'

test.each([
  ['a link', `{"href":"${upstreamRoot}/wp/v2/posts/5"}`, `{"href":"${publicRoot}/wp/v2/posts/5"}`],
  ['the root by itself', `["${upstreamRoot}"]`, `["${publicRoot}"]`],
  ['a longer word', `["${upstreamRoot}x/posts"]`, undefined],
  ['the name of a member', `{"${upstreamRoot}/x" : 1}`, undefined],
  ['a quoted text', `["\\"${upstreamRoot}/x\\""]`, undefined],
])('%s', (_, content, mapped) => {
  const sameHost = names({ mode: 'same', upstreamRoots: () => [upstreamRoot] })
  const mapping = sameHost.fromUpstream(jsonHeaders).mapper
  if (mapping === undefined) throw new Error('nothing maps it')
  expect(mapping.whole(Buffer.from(content)).toString()).toBe(mapped ?? content)
})
