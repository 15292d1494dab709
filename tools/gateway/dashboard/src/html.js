// SPDX-License-Identifier: Apache-2.0
import htm from 'htm';
import { h } from 'preact';

/** Elements from templates. What stands in ${} becomes text or an attribute, never markup. */
export const html = htm.bind(h);
