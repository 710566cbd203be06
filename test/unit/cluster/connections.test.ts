import { expect, it } from 'vitest'
import { connect } from '../../../src/cluster/redis/connections.ts'
import { freePort } from '../../support/ports.ts'
import { maxReplyBytes } from './connected-to.ts'

it.each([false, true])(
  'a store that is not there is told of once, however often it is looked for (cluster: %s)',
  async (cluster) => {
    const states: string[] = []
    let refused = 0
    const connection = connect(
      {
        url: `redis://127.0.0.1:${await freePort()}`,
        cluster,
        tls: { ca: '', cert: '', key: '', serverName: '' },
        troubled: () => {
          refused += 1
        },
        timeoutMs: 500,
        maxReplyBytes,
      },
      (state) => states.push(state),
    )
    try {
      await expect.poll(() => refused).toBeGreaterThanOrEqual(4)
      expect(states).toEqual(['down'])
    } finally {
      connection.disconnect()
    }
  },
)
