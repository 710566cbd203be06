import { expect, onTestFinished } from 'vitest'
import { connect } from '../../../src/cluster/redis/connections.ts'
import type { ScriptedNode } from './scripted-node.ts'

/** Longest reply that is taken. */
export const maxReplyBytes = 1024 * 1024

/** A connection to a node that is ready; it and the node end with the test. */
export const connectedTo = async (
  node: ScriptedNode,
  options: { readonly cluster: boolean; readonly timeoutMs: number },
): Promise<ReturnType<typeof connect>> => {
  const connection = connect(
    {
      url: `redis://127.0.0.1:${node.port}`,
      tls: { ca: '', cert: '', key: '', serverName: '' },
      troubled: () => undefined,
      maxReplyBytes,
      ...options,
    },
    () => undefined,
  )
  onTestFinished(() => {
    connection.disconnect()
    node.close()
  })
  await expect.poll(() => connection.status).toBe('ready')
  return connection
}
