import { GatewayError } from '../../errors.ts'
import { hasBearer } from '../../http/credential-fields.ts'
import type { Matched, Phase } from '../exchange.ts'

/** A credential must be there where the contract demands one. */
export const authorize = (): Phase<Matched> => ({
  name: 'authorize',
  run: (exchange, next) => {
    if (exchange.service.requiresBearer && !hasBearer(exchange.request.fields)) {
      throw new GatewayError('credential_missing', {
        fields: ['WWW-Authenticate', `Bearer realm="${exchange.service.name}"`],
      })
    }
    return next(exchange)
  },
})
