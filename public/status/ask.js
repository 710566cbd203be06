// Requests to the admin side. Addresses are relative: a proxy may serve the page below a path.

import { element } from './draw.js'

/** The token stays in the field: the browser stores nothing. */
const authorization = () => {
  const token = /** @type {HTMLInputElement} */ (element('token')).value
  return token === '' ? {} : { Authorization: `Bearer ${token}` }
}

/** Without a timeout, a gateway that accepts the connection and sends nothing would look alive. */
const patienceMs = 10_000

/** @param {string} address */
export const read = async (address) => {
  const answer = await fetch(address, {
    headers: authorization(),
    cache: 'no-store',
    signal: AbortSignal.timeout(patienceMs),
  })
  return { ok: answer.ok, status: answer.status, content: await answer.json() }
}

/** @param {string} address @param {unknown} content @param {'POST' | 'PUT'} [method] */
export const write = async (address, content, method = 'POST') => {
  const answer = await fetch(address, {
    method,
    headers: { 'Content-Type': 'application/json', ...authorization() },
    body: JSON.stringify(content),
  })
  return { ok: answer.ok, status: answer.status, content: await answer.json() }
}
