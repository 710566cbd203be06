/** Responses of the gateway without an upstream request. */
export const respondedByGateway: readonly string[] = [
  'anon-post-badjson',
  'arr-assoc',
  'batch-26',
  'bool-yes',
  'enum-bad',
  'int-float2',
  'method-not-allowed',
  'oembed-missing',
  'posts-pp101',
  'update-badtype',
  'update-invalidjson',
]

/** Recordings that end in the middle of a document: only what announces them can be compared (discovery-wordpress.test.ts). */
export const cutShort: readonly string[] = ['options-posts']

type Decision = {
  readonly reason: string
  readonly status: number
  readonly code: string | undefined
  readonly reachesUpstream: 0 | 1
}

const refused = (reason: string): Decision => ({
  reason,
  status: 400,
  code: 'trellis_ambiguous_request',
  reachesUpstream: 0,
})

/** Recordings that have another answer here, and why (docs/decisions/0003). */
export const differingByDecision: Readonly<Record<string, Decision>> = {
  'id-query-override': refused('the query names another item than the path'),
  'id-query-del': refused('the query names another item than the path'),
  'update-idmismatch': refused('the content names another item than the path'),
  'id-body-override': refused('content on GET would be read as parameters'),
  'body-in-get': refused('content on GET would be read as parameters'),
  'method-override-get': refused('a GET that deletes'),
  'method-param-get': refused('a GET that deletes'),
}
