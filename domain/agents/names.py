"""Generates agent names that people can say and remember: `quiet-otter`, `brave-heron-2`."""

from collections.abc import Container, Iterator
from itertools import count
from random import Random
from typing import Final

# After this many misses most names are taken, and a numbered name finds a free one sooner.
_PLAIN_TRIES: Final = 20

ADJECTIVES: Final = """
    able active agile airy alert amber ample apt artful astute
    balmy beaming bold brave breezy bright brisk bubbly calm candid
    careful caring cheerful cheery chipper civil clear clever cordial cosy
    crisp curious dapper daring dashing dazzling deft diligent eager earnest
    easy elegant fair faithful fearless festive fine fluent fond frank
    friendly frosty gallant genial gentle giving glad gleaming glowing golden
    graceful gracious grateful handy happy hardy hearty helpful honest hopeful
    humble ideal jaunty jolly jovial joyful keen kind lively loyal
    lucid lucky mellow merry mighty mindful modest neat nifty nimble
    noble patient peaceful perky playful plucky polite posh prompt proud
    quick quiet radiant ready robust rosy serene shiny silver sincere
    smart snug spry steady sturdy sunny swift tender thoughtful tidy
    trusty upbeat valiant vivid warm wise witty zesty
"""

ANIMALS: Final = """
    albatross alpaca antelope armadillo badger beaver bee beetle bison bluebird
    bobcat bunting butterfly camel capybara caribou cat chamois cheetah chickadee
    chinchilla chipmunk cicada condor coral cormorant crab crane cricket curlew
    deer dingo dolphin dormouse dove dragonfly duck eagle egret eland
    elephant elk ermine falcon ferret finch firefly flamingo fox gannet
    gazelle gecko gerbil gibbon giraffe goldfinch goose grebe grouse hamster
    hare hawk hedgehog heron hoopoe hornbill horse hummingbird ibex ibis
    iguana impala jackdaw jaguar jay kestrel kingfisher kite kiwi koala
    kudu lapwing lark lemur leopard linnet llama lobster lynx macaw
    magpie mallard manatee marmot marten meerkat mole mongoose moose narwhal
    newt nightingale ocelot octopus okapi orca oriole osprey otter owl
    panda parrot partridge pelican penguin pheasant pika plover pony porpoise
    puffin puma quail quokka rabbit raven reindeer robin salmon seahorse
    seal sparrow squirrel starling stork swallow swan tapir tern toucan
    turtle walrus wombat wren yak zebra
"""


def propose_name(random: Random, taken: Container[str]) -> str:
    """Propose a name that is not in `taken`: `adjective-animal`, numbered when few are left."""
    return next(name for name in _candidates(random) if name not in taken)


def _candidates(random: Random) -> Iterator[str]:
    """Yield plain names, then numbered ones; numbers never repeat, so a free one always follows."""
    adjectives = ADJECTIVES.split()
    animals = ANIMALS.split()
    for attempt in count():
        name = f"{random.choice(adjectives)}-{random.choice(animals)}"
        yield name if attempt < _PLAIN_TRIES else f"{name}-{attempt - _PLAIN_TRIES + 2}"
