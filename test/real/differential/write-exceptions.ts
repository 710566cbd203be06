import type { Exception } from './exceptions.ts'

/** Writes that differ on purpose. */
export const writeExceptions: readonly Exception[] = [
  {
    reason: 'content or query names another item than the path: refused (docs/decisions/0003)',
    aspects: ['status', 'content'],
    cases: [
      'PUT /wp/v2/posts/10 (admin) json {"id":999999,"title":"Other id"}',
      'DELETE /wp/v2/posts/999999?id=888888 (admin)',
    ],
  },
  {
    reason:
      'the contract is that of WordPress 6.9, which can flip an image and names that first; this one is 6.7',
    aspects: ['content'],
    cases: [
      'POST /wp/v2/media/121/edit (admin) json {"src":"http://x.example/","modifiers":[{"type":"rotate","args":{"angle":"x"}}]}',
      'POST /wp/v2/media/121/edit (admin) json {"src":"http://x.example/","modifiers":[{"type":"flip"}]}',
      'POST /wp/v2/media/121/edit (admin) json {"src":"http://x.example/","modifiers":[{"type":"crop","args":{"left":1}}]}',
    ],
  },
  {
    reason: 'its own check that WordPress does not announce has other words for the same fault',
    aspects: ['content'],
    cases: ['DELETE /wp/v2/users/4?force=true&reassign=x (admin)'],
  },
  {
    reason:
      'WordPress ignores content that it cannot read and says 200: a write that does nothing is refused',
    aspects: ['status', 'content'],
    cases: [
      'POST /wp/v2/posts/15?_fields=id,title.raw (admin) text/plain {"title":"text"}',
      'POST /wp/v2/posts/15?_fields=id,title.raw (admin) jsonx {"title":"not json"}',
    ],
  },
  {
    reason: 'the gateway serves ranges of complete answers (RFC 9110 section 14)',
    aspects: ['status', 'content'],
    cases: ['GET /wp/v2/posts/18?_fields=id Range: bytes=0-3'],
  },
]

/** Writes that WordPress refuses for their arguments and the gateway leaves to it. */
export const writesLeftToWordPress: readonly {
  readonly reason: string
  readonly cases: readonly string[]
}[] = [
  {
    reason: 'only the theme knows its templates',
    cases: ['PUT /wp/v2/posts/10 (admin) json {"template":"nope"}'],
  },
]
