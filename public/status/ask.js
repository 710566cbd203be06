// Requests to the admin side that served this page; addresses are relative, it may stand behind a path of something else.

import { element } from './draw.js'

/** The token stays in the field: nothing is kept in the browser. */
const authorization = () => {
  const token = /** @type {HTMLInputElement} */ (element('token')).value
  return token === '' ? {} : { Authorization: `Bearer ${token}` }
}

/** A gateway that takes a connection and says nothing would leave the last numbers standing. */
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
