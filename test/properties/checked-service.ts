import { timeoutMs, type VersionedUpstream } from './versioned-upstream.ts'

/** No forward takes longer. A write whose response was lost is carried out within it, or never. */
export const totalMs = 2_000

/** The service that a checker reads and writes, as it stands in a config file. */
export const checkedService = (upstream: VersionedUpstream): Record<string, unknown> => ({
  contract: 'site',
  mount: '/index.php/site-json',
  discovery: { source: 'static', identity: { name: 'Test site' } },
  cache: {
    rules: [
      { match: 'GET /site/v2/pages/**', ttl: '20ms', staleWhileRevalidate: '1m', staleIfError: '1m' },
      { match: 'GET /site/v2/posts', ttl: '1m', scope: 'credential', staleWhileRevalidate: '1m' },
      { match: 'GET /site/v2/**', ttl: '1m' },
    ],
  },
  upstream: {
    targets: [upstream.origin],
    basePath: '/index.php/wp-json',
    timeouts: { headers: `${timeoutMs}ms`, total: `${totalMs}ms` },
    maxConcurrent: 256,
    queue: { max: 10_000 },
    // The one target breaks many responses on purpose.
    eject: { after: 1000 },
    breaker: { failureRatio: 0 },
  },
})
